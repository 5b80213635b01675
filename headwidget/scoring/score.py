"""The engine: checks everything, then lets a method's chunks fill ``S[task][run, layer, head]``. Ctrl-C keeps what is done."""

from __future__ import annotations

import dataclasses
import functools
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from headwidget.models import Model, hooks, load
from headwidget.scores import HeadScores, chance, provenance
from headwidget.scoring import checks, registry
from headwidget.scoring.batch import batches, correct, forward, plan
from headwidget.scoring.contract import Together
from headwidget.scoring.encode import Encoded, EncodedTask, encode
from headwidget.scoring.memory import halving
from headwidget.scoring.memory import out_of_memory as out_of_memory  # noqa: PLC0414
from headwidget.scoring.progress import Progress
from headwidget.tasks import Task, suite

if TYPE_CHECKING:
    from headwidget.scoring.contract import Chunk, Method

T = TypeVar("T")


def score(
    model: Model | Any,
    tasks: Task | str | Iterable[Task],
    method: str = "gradient",
    *,
    batch_size: int | None = None,
    only_correct: bool = False,
    seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> HeadScores:
    """Score every head of ``model`` on ``tasks``: a Task, several, or the name of a built-in suite.

    ``method`` is ``"gradient"``, ``"ablation"``, ``"attribution"``, ``"probe"``, ``"gating"``, ``"relations"`` or ``"patterns"``; further
    keywords are the method's own options (``replace="mean"``, …).
    ``only_correct`` leaves out prompts whose answer is not the model's own first choice. Ctrl-C gives what is done so far, marked partial.

    >>> import headwidget as hw
    >>> task = hw.Task("capitals", [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")])
    >>> hw.score(hw.load(), task, progress=False).values("capitals").shape
    (2, 30, 9)
    """
    ready = prepare(model, tasks, method, batch_size=batch_size, seed=seed, **options)
    if only_correct and ready.method.encode is not None:
        raise ValueError(
            f"method {method!r} asks the model no questions, so it cannot keep the prompts that it answers right; leave only_correct out."
        )
    if only_correct:
        ready.keep_correct()
    partial = False
    with Progress(*ready.steps(), ready.method.name, progress) as bar:
        try:
            for _ in ready.land(bar.note):
                pass
        except KeyboardInterrupt:
            partial = True
            if not any(ready.done(task) for task in ready.tasks):
                raise
    return ready.scores(partial=partial)


def prepare(
    model: Model | Any,
    tasks: Task | str | Iterable[Task],
    method: str,
    *,
    batch_size: int | None,
    seed: int,
    **options: Any,
) -> Scoring:
    """Check all that was asked and tokenise it: whatever is wrong is said here, before any forward."""
    if not isinstance(model, Model):
        if isinstance(model, torch.nn.Module):
            raise TypeError(
                "hw.score takes what hw.load gives; for a model you already have: hw.score(hw.load(model, tokenizer), …)."
            )
        model = load(model)
    chosen = registry.find(method)
    checked = registry.options(chosen, options)
    chosen.check(model)
    checks.batch_size(batch_size)
    checks.seed(seed)
    sources = listed(tasks, seed)
    encoded = (
        [encode(task, model) for task in sources]
        if chosen.encode is None
        else chosen.encode(sources, model, checked, seed)
    )
    chosen.check_tasks(model, encoded, checked)
    return Scoring(model, chosen, checked, encoded, batch_size, seed, its=Together(seed, sources))


def listed(given: Task | str | Iterable[Task], seed: int) -> Sequence[Task]:
    """The tasks that were asked for, as a list, or a sentence about what is wrong with them."""
    if isinstance(given, str):
        return suite(given, seed=seed)
    if not isinstance(given, Iterable) and not isinstance(given, Task):
        raise TypeError(
            f"tasks must be hw.Task objects or a suite's name; got a {type(given).__name__}."
        )
    if isinstance(given, Mapping):
        raise TypeError(
            "tasks must be hw.Task objects or a suite's name; got a dict. Make one with hw.Task(name, examples) or hw.Task.read."
        )
    found = [given] if isinstance(given, Task) else list(given)
    if not found:
        raise ValueError(
            "no tasks to score: give a Task, a list of them, or the name of a suite such as 'math-syntax'."
        )
    for task in found:
        if not isinstance(task, Task):
            raise TypeError(
                f"tasks must be hw.Task objects or a suite's name; got a {type(task).__name__}. Make one with hw.Task(name, [(prompt, answer), …])."
            )
    if twice := [name for name, n in Counter(t.name for t in found).items() if n > 1]:
        raise ValueError(f"two tasks are named {twice[0]!r}; give each a name of its own.")
    return found


@dataclass
class Scoring:
    """One scoring under way: what was asked, and the cells that have landed."""

    model: Model
    method: Method
    options: Any
    tasks: list[EncodedTask]
    batch_size: int | None
    seed: int
    its: Together = field(default_factory=Together)
    """What a method that scores all tasks together is told and leaves behind."""
    dropped: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    known_accuracy: dict[str, dict[str, float]] = field(default_factory=dict)
    halved: list[int] = field(default_factory=list)
    """The batch sizes that were gone down to because memory ran out."""
    _cells: dict[str, dict[str, np.ndarray]] = field(
        default_factory=dict
    )  # aspect, task: (run, layer, head), NaN where nothing has landed; "" is the score
    _right: dict[str, np.ndarray] = field(default_factory=dict)  # (2, run)

    def steps(self) -> tuple[float, str]:
        """How much there is to do, and what it is counted in."""
        return self.method.steps(self.tasks, self.options)

    def land(self, note: Callable[[str, float], None]) -> Iterator[tuple[EncodedTask, Chunk]]:
        """Score everything: each chunk when it is in its place. ``note(what, steps)`` is told of every step that is done."""
        self.its.note = self._noting(note)
        for task, chunk in self.chunks():
            self.add(task, chunk)
            if self.method.together is None:  # else the method itself says how far it is
                note(task.name, len(chunk.runs) * chunk.values.shape[1] / self.model.shape[0])
            yield task, chunk

    def _noting(self, note: Callable[[str, float], None]) -> Callable[[str, float], None]:
        """Tell of the steps that a method counts itself; they are taken back where memory ran out and it starts over."""
        done, halved = 0.0, 0

        def noting(what: str, steps: float) -> None:
            nonlocal done, halved
            again, halved = len(self.halved) != halved, len(self.halved)
            back, done = (done, steps) if again else (0.0, done + steps)
            note(what, steps - back)

        return noting

    def chunks(self) -> Iterator[tuple[EncodedTask, Chunk]]:
        """Every chunk of every task, as it lands. Out of memory, a batch is halved and the work goes on with what is not done yet."""
        if (together := self.method.together) is not None:
            yield from self._halving(
                lambda: together(self.model, self.tasks, self.batch_size, self.options, self.its)
            )
            return
        for task in self.tasks:
            for chunk in self._halving(functools.partial(self._rest, task)):
                yield task, chunk

    def _rest(self, task: EncodedTask) -> Iterator[Chunk]:
        """The chunks of the runs of a task that are not done yet."""
        done = set(self.done(task))
        left = [i for i in range(len(task.examples)) if i not in done]
        rest = (
            dataclasses.replace(task, examples=tuple(task.examples[i] for i in left))
            if done
            else task
        )
        for chunk in self.method.run(self.model, rest, self.batch_size, self.options):
            yield (
                dataclasses.replace(chunk, runs=tuple(left[i] for i in chunk.runs))
                if done
                else chunk
            )

    def _halving(self, start: Callable[[], Iterator[T]]) -> Iterator[T]:
        """What ``start`` yields; where memory runs out it is started again with half the batch."""

        def halved(size: int) -> None:
            self.batch_size = size
            self.halved.append(size)

        return halving(lambda _: start(), self.batch_size, usual=self._usual_batch, halved=halved)

    def _usual_batch(self) -> int:
        """How many prompts run together where nobody said how many."""
        own: int | None = getattr(self.options, "batch", None)
        return own or max(
            len(runs) for task in self.tasks for runs in plan(task.examples, self.model, None)
        )

    def add(self, task: EncodedTask, chunk: Chunk) -> None:
        """Put a chunk in its place."""
        if not np.isfinite(chunk.values).all():
            bad = np.argwhere(~np.isfinite(chunk.values))[0]
            label = self.labels(task)[chunk.runs[int(bad[0])]]
            raise FloatingPointError(
                f"task {task.name!r}: {self.method.name} gave a score that is not a number for {label[:80]!r} "
                f"({self.model.dtype}); load the model with dtype=torch.float32."
            )
        runs = len(self.labels(task))
        for aspect, values in ({"": chunk.values} | dict(chunk.aspects)).items():
            cells = self._cells.setdefault(aspect, {}).setdefault(
                task.name, np.full((runs, *self.model.shape), np.nan, np.float32)
            )
            cells[list(chunk.runs), chunk.layers] = values
        if chunk.correct is not None:
            self._right.setdefault(task.name, np.zeros((2, runs), bool))[:, list(chunk.runs)] = (
                chunk.correct
            )

    def labels(self, task: EncodedTask) -> Sequence[str]:
        """What a task's runs are called: its prompts, unless the method says otherwise."""
        return self.its.labels.get(task.name) or [e.label for e in task.examples]

    def done(self, task: EncodedTask) -> list[int]:
        """The runs of a task whose every head is scored."""
        cells = self._cells.get("", {}).get(task.name)
        return (
            []
            if cells is None
            else [int(i) for i in np.flatnonzero(np.isfinite(cells).all((1, 2)))]
        )

    def keep_correct(self) -> None:
        """Leave out the prompts whose answer is not the model's own first choice; how many is kept in the scores' meta."""
        kept, sources = [], []
        for task, source in zip(self.tasks, self.its.sources):
            right = np.zeros((2, len(task.examples)), bool)
            for batch in batches(task.examples, self.model, self.batch_size):
                with hooks.scoring(self.model):
                    right[:, list(batch.runs)] = (
                        correct(forward(self.model, batch), batch).cpu().numpy()
                    )
            examples = tuple(e for e, fine in zip(task.examples, right[0]) if fine)
            if not examples:
                raise ValueError(
                    f"task {task.name!r}: the model answers none of its {len(right[0])} prompts right, so only_correct leaves nothing to score."
                )
            wrong = [e.label for e, fine in zip(task.examples, right[0]) if not fine]
            if wrong:
                self.dropped[task.name] = [
                    {
                        "why": "the answer is not the model's first choice",
                        "count": len(wrong),
                        "prompts": wrong,
                    }
                ]
            self.known_accuracy[task.name] = _accuracy(task.examples, right)
            chosen = [int(i) for i in np.flatnonzero(right[0])]
            held_out = tuple(new for new, old in enumerate(chosen) if old in task.held_out)
            kept.append(dataclasses.replace(task, examples=examples, held_out=held_out))
            sources.append(
                Task(source.name, [source.examples[i] for i in chosen], source.category, held_out)
            )
        self.tasks, self.its.sources = kept, sources
        self.method.check_tasks(self.model, kept, self.options)

    def scores(self, *, partial: bool) -> HeadScores:
        """What has landed, as HeadScores."""
        have = {task.name: self.done(task) for task in self.tasks}
        kept = [task for task in self.tasks if have[task.name]]
        arrays = {
            aspect: {t.name: of[t.name][have[t.name]] for t in kept}
            for aspect, of in self._cells.items()
        }
        own = {
            "partial": partial,
            "tasks": {t.name: self._task_meta(t, have[t.name]) for t in kept},
        }
        return self._made(
            arrays,
            {t.name: [self.labels(t)[i] for i in have[t.name]] for t in kept},
            {**self._meta(), **self.its.meta, **own},
        )

    def snapshot(self) -> HeadScores:
        """What can be shown now: of each task the runs that are done or, while none is, those under way. What is not scored yet is 0 there, and
        ``meta["unscored"]`` says which rows that are."""
        shown, labels, unscored = {}, {}, {}
        for task in self.tasks:
            cells = self._cells.get("", {}).get(task.name)
            runs = self.done(task)
            if not runs and cells is not None:
                runs = [int(i) for i in np.flatnonzero(np.isfinite(cells).any((1, 2)))]
            values = (
                cells[runs]
                if cells is not None and runs
                else np.full((1, *self.model.shape), np.nan, np.float32)
            )
            missing = np.isnan(values).any(axis=(0, 2), keepdims=True)  # (1, layer, 1)
            shown[task.name] = np.where(missing, 0, values)
            labels[task.name] = [self.labels(task)[i] for i in runs] or ["not scored yet"]
            if missing.any():
                unscored[task.name] = [int(row) for row in np.flatnonzero(missing)]
        meta = {
            "model": self.model.name,
            "partial": True,
            "unscored": unscored,
            **({"display": self.its.meta["display"]} if "display" in self.its.meta else {}),
        }
        return self._made({"": shown}, labels, meta)

    def _made(
        self,
        arrays: dict[str, dict[str, np.ndarray]],
        runs: dict[str, list[str]],
        meta: dict[str, Any],
    ) -> HeadScores:
        return HeadScores.from_arrays(
            arrays.pop("", {}),
            method=self.method.name,
            runs=runs,
            layers=[layer.index for layer in self.model.layers],
            signed=self.method.signed and not getattr(self.options, "abs", False),
            categories={
                t.name: t.category for t in self.tasks if t.category is not None and t.name in runs
            },
            meta=meta,
            aspects=arrays,
        )

    def _meta(self) -> dict[str, Any]:
        import transformers

        import headwidget

        return {
            "model": self.model.name,
            "revision": self.model.revision,
            "weights": self.model.fingerprint(),
            "family": self.model.family.name,
            "n_kv_heads": self.model.n_kv_heads,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "device": str(self.model.device),
            "attention": str(getattr(self.model.config, "_attn_implementation", "")),
            "options": options_meta(self.options),
            "seed": self.seed,
            "batch_size": self.batch_size,
            **(
                {"out_of_memory": f"the batch was halved to {self.halved[-1]}"}
                if self.halved
                else {}
            ),
            "versions": {
                "headwidget": headwidget.__version__,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        }

    def _task_meta(self, task: EncodedTask, have: list[int]) -> dict[str, Any]:
        dropped = list(self.dropped.get(task.name, []))
        if missing := len(self.its.runs.get(task.name, self.labels(task))) - len(have):
            dropped.append({"why": "scoring was stopped before it", "count": missing})
        known = self.known_accuracy.get(task.name)
        if known is None and task.name in self.its.right:
            known = _accuracy(task.examples, self.its.right[task.name])
        if known is None and task.name in self._right:
            known = _accuracy([task.examples[i] for i in have], self._right[task.name][:, have])
        own = dict(self.its.tasks.get(task.name, {}))
        if (
            task.name in self.its.labels or task.name in self.its.runs
        ):  # runs that are fits, or held-out prompts: the others were fitted on
            own["made_from"] = [provenance.digest(e.label) for e in task.examples]
        warnings = [own.pop("warning", None), self._at_chance(known or {})]
        return {
            "prompts": len(task.examples) if task.name in self.its.labels else len(have),
            "dropped": dropped,
            "before_prompt": list(task.before),
            "tokenised_differently_with_answer": task.joint_differs,
            **(known or {}),
            **own,
            **({"warning": " ".join(w for w in warnings if w)} if any(warnings) else {}),
        }

    def _at_chance(self, known: Mapping[str, Any]) -> str | None:
        """A sentence where the model itself does no better than a coin on the task's foils."""
        if "beats_foil" not in known:
            return None
        return chance.foil_warning(known["beats_foil"], known["foils"], self.method.at_chance)


def options_meta(options: Any) -> dict[str, Any]:
    """A method's options as JSON; a task among them by its name."""
    found = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return {name: value.name if isinstance(value, Task) else value for name, value in found.items()}


def _accuracy(examples: Sequence[Encoded], right: np.ndarray) -> dict[str, Any]:
    """How many prompts were asked and which share was answered right; of those with a foil, how many there are and which share beats it."""
    found: dict[str, Any] = {"asked": len(examples), "accuracy": float(right[0].mean())}
    foiled = np.array([e.foil is not None for e in examples])
    if foiled.any():
        found |= {"foils": int(foiled.sum()), "beats_foil": float(right[1][foiled].mean())}
    return found

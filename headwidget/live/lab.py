"""The lab: the explorer with a model behind it, as a widget.

It is composed of a runner (runs of methods), a pacer (how often their scores are drawn), a
prompt panel (prompts and heads) and measurements (what scaled heads do). All work with the
model is done on the model's own thread (:mod:`headwidget.live.worker`), so the kernel stays
free. A job that waits there does not keep its lab alive.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from headwidget.display import settings, wire
from headwidget.display.guarded_widget import page_trait
from headwidget.display.plain_values import or_trait_error
from headwidget.live import lifetime, offer, pacer, payloads, run_settings
from headwidget.live.ended import Ended
from headwidget.live.history import History
from headwidget.live.lock import Lock
from headwidget.live.measure import pieces
from headwidget.live.prompt_explorer import PromptExplorer
from headwidget.live.prompt_panel import PromptPanel
from headwidget.live.run_settings import PROMPTS
from headwidget.live.runner import UNDER_WAY, Runner
from headwidget.models import Model, load
from headwidget.scores import HeadScores
from headwidget.scoring import registry, score
from headwidget.scoring.checkpoint import Checkpoint
from headwidget.scoring.run import Scoring
from headwidget.tasks import Task

if TYPE_CHECKING:
    from typing_extensions import Self

LAB_TRAITS = ("asked", "options", "gates", "heed_gates", "prompt", "target")
"""The traits that :func:`live` takes beside an explorer's."""


class Lab(PromptExplorer):
    """The explorer of a model, live. Made by :func:`headwidget.live`.

    Beside an explorer's traits it has those of the next run (``method``, ``options``,
    ``asked``, ``prompts``), ``prompt`` and ``target``, and ``gates``, the factors of the heads'
    outputs. ``run()``, ``stop()``, ``await lab.done`` and ``lab.scores`` do without a mouse
    what the buttons do. ``lab.observe(handler, "state")`` follows a run.

    >>> import headwidget as hw
    >>> pairs = [("The capital of France is", " Paris"), ("The capital of Italy is", " Rome")]
    >>> lab = hw.live(hw.load(), hw.Task("capitals", pairs), method="attribution")
    >>> lab.run().wait()
    True
    >>> lab.scores.values("capitals").shape, lab.state
    ((2, 30, 9), 'done')
    >>> lab.close()
    """

    method = page_trait("gradient", "The method of the next run.")
    """The method of the next run, as in :func:`headwidget.score`."""
    options = page_trait({}, "The next run's options.")
    """The method's own options for the next run; those not in it have the method's defaults."""
    asked = page_trait([], "The tasks of the next run.")
    """The names of the tasks that the next run scores."""
    prompts = page_trait(PROMPTS, "How many prompts of each task.")
    """How many prompts of each task the next run scores; None is all of them."""
    heed_gates = page_trait(False, "Whether the next run heeds the gates.")
    """Does the next run score the model with its heads scaled by ``gates``?"""
    state = traitlets.Unicode("idle", read_only=True, help="How the run stands.")
    """``"idle"``, ``"running"``, ``"stopping"``, ``"done"``, ``"stopped"`` or ``"failed"``."""

    _kind = "a lab"
    _jobs = ("prompt", "head", "salient", "effect", "warm", "check")
    _live = traitlets.Bool(True).tag(sync=True)
    _offer = traitlets.Dict().tag(sync=True)
    """Methods with their options, and tasks, for the front end to offer; set last in __init__."""
    _state = traitlets.Dict().tag(sync=True)
    """The run's state and progress (:attr:`Runner.state`)."""
    _past: Any = traitlets.List().tag(sync=True)
    """The last runs, the newest first, for the front end's list."""

    def __init__(
        self,
        model: Model,
        tasks: Iterable[Task],
        *,
        method: str,
        prompts: int | None,
        seed: int = 0,
        **traits: Any,
    ) -> None:
        self._seed = seed
        self._whole = ""  # the method of the last whole scores
        self._sources = {task.name: task for task in tasks}
        self._panel, lock, self._history = PromptPanel(model), Lock(), History()
        self._pacer = pacer.Pacer(pacer.overhead(model.device.type))
        self._runner = Runner(
            model, self._pacer, lock, show=self._show, tell=self._tell, kept=self._kept
        )
        unscored = payloads.nothing_yet(model, self._sources.values(), method)
        lab_traits = {name: traits.pop(name) for name in LAB_TRAITS if name in traits}
        super().__init__(model, lock, unscored, **traits)
        with self.hold_trait_notifications():
            self.method, self.prompts = method, prompts
            asked = lab_traits.pop("asked", list(self._sources))
            self.asked = run_settings.check(self._sources, "asked", asked)
            self.options = lab_traits.pop("options", {})
        self._state = self._runner.state
        self.gates = np.ones(model.shape, np.float32)
        self._offered = offer.offer(model, self._sources.values())
        self._offer_for_tasks()
        self._is_made = True
        for name, value in lab_traits.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"Lab({self._model.name}, {self.method}, {', '.join(self.asked)}: {self.state})"

    # ---- runs ----

    def run(self, *, checkpoint: str | Path | None = None, **keywords: Any) -> Self:
        """Start a run with ``method``, ``options``, ``asked`` and ``prompts`` as they are set.

        Keywords set them first (``tasks`` sets ``asked``); any other keyword is an option of
        the method. A run under way is stopped and replaced. ``checkpoint`` is a file that
        keeps what is scored, as in :func:`headwidget.score`. Gives the lab back:
        ``lab.run().wait()``, or ``await lab.run().done``.
        """
        self._check_open()
        run, options = run_settings.split(keywords)
        for name, value in run.items():
            setattr(self, name, value)
        run_settings.check_misspelt(self.method, options)
        if options or "method" in run:
            self.options = options
        scoring = self._prepared()
        run_settings.heed(scoring, self.gates, self.heed_gates)
        with self._lock:
            self._check_open()
            if checkpoint is not None:
                scoring.checkpoint = Checkpoint(checkpoint)
            self._set(_trouble="")
            self._runner.start(scoring)
        return self

    def _asked_tasks(self) -> list[Task]:
        """The tasks of the next run, with as many prompts as it scores."""
        tasks = [self._sources[name] for name in self.asked]
        if self.prompts is not None:
            tasks = [task.sample(self.prompts, seed=self._seed) for task in tasks]
        return tasks

    @traitlets.observe("asked", "prompts", "options", "method")
    def _new_asked(self, change: Any) -> None:
        if self._is_made:
            self._offer_for_tasks()

    def _offer_for_tasks(self) -> None:
        """Offer every method, with why it cannot score the tasks that are asked for, if so."""
        chosen = {self.method: self.options}
        self._offer = offer.for_tasks(
            self._offered, self._model, self._asked_tasks(), self._seed, chosen
        )

    def _prepared(self) -> Scoring:
        """The next run, checked and tokenised."""
        tasks = self._asked_tasks()
        return score.prepare(
            self._model, tasks, self.method, batch_size=None, seed=self._seed, **self.options
        )

    def stop(self) -> None:
        """Ask the run to stop; what is done stays, marked partial."""
        self._runner.stop()

    def _abandon(self) -> None:
        self._runner.abandon()

    @property
    def done(self) -> Coroutine[Any, Any, HeadScores | None]:
        """``await lab.done`` waits for the run, or the measurement, and gives ``lab.scores``.

        The kernel serves other work meanwhile.
        """
        return Ended(lambda: self._is_busy, lambda: self.scores)

    @property
    def _is_busy(self) -> bool:
        return self._runner.is_busy or self._is_measuring

    @property
    def scores(self) -> HeadScores | None:
        """The scores of the last run, or of the prompts that the run under way has done.

        None before there are any. ``lab.shown`` are the scores that the maps show, in which
        cells of the run under way may not be scored yet.
        """
        return self._runner.scores

    @property
    def results(self) -> dict[str, HeadScores]:
        """The last scores of every method that was run, by its name.

        Those with heads changed stand beside: "gradient · 3 heads changed".
        """
        return self._runner.results

    @property
    def history(self) -> list[HeadScores]:
        """The scores of the last runs, the newest first.

        ``hw.compare(lab.history[0], lab.history[1])`` shows the last two side by side.
        """
        return [past.scores for past in self._history]

    def show_again(self, index: int) -> Self:
        """Show the scores of ``history[index]`` on the maps, as ``lab.scores``."""
        self._check_open()
        past = self._history.at(index)
        self._runner.show_again(past.scores, past.at)
        self._list_runs()
        return self

    # ---- what the runner calls ----

    def _show(self, scores: HeadScores, final: bool) -> None:
        """Show other scores. Settings that do not fit them go back to their defaults."""
        header, buffer = wire.encode(scores)
        with self._lock, self.hold_sync():
            reset = run_settings.reset(
                self._shown, scores, self.rule, self.tasks, final and self._whole != scores.method
            )
            self._whole = scores.method if final else self._whole
            self._shown = scores
            self._set(**reset, _header=header, _buffer=buffer)
            self._list_runs()

    def _tell(self, state: dict[str, Any]) -> None:
        trouble = {"_trouble": state["trouble"]} if state.get("trouble") else {}
        ended = state["state"] not in ("running", "stopping")
        if ended and self._trouble == UNDER_WAY:
            trouble.setdefault("_trouble", "")
        self._set(_state=state, state=state["state"], **trouble)

    def _kept(self) -> None:
        self._history.add(self._shown)
        self._list_runs()
        self._later("head", Lab._read_head)

    def _list_runs(self) -> None:
        self._set(_past=[past.to_json(self._shown) for past in self._history])

    def _check_ahead(self) -> None:
        """Check the model for the next run, so that its first scores land soon."""
        with contextlib.suppress(Exception):  # the run itself says what is wrong
            self._prepared().check_model()

    # ---- gates and what they do ----

    def _pieces(self, prompts: int, draws: int) -> Iterator[dict[str, Any]]:
        panel = self._panel  # the measurement must not hold the lab
        return pieces(
            self._model,
            [self._sources[name] for name in self.asked],
            self.gates,
            lambda: panel.reading,
            list(self.results.values()),
            prompts=prompts,
            draws=draws,
            seed=self._seed,
        )

    # ---- traits ----

    @traitlets.validate("method", "options", "asked", "prompts", "heed_gates")
    def _valid_run(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        return or_trait_error(name, run_settings.check, self._sources, name, value)

    # ---- the front end ----

    def _handle_custom_msg(self, content: Any, buffers: Any) -> None:
        self._on_message(self, content, buffers)
        super()._handle_custom_msg(content, buffers)

    def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
        """Answer a message of the front end: a button was pressed, or a view came or went."""
        kind = content.get("ask") if isinstance(content, Mapping) else None
        if kind == "painted":
            self._pacer.painted(content.get("took"))
        elif kind == "alive":
            self.send({"alive": True})
        elif kind == "hidden":
            lifetime.fewer_views(self)
        elif kind == "shown":
            lifetime.more_views(self)
            self._later("check", Lab._check_ahead, idle=True)
            self._later("warm", Lab._warm, idle=True)
        elif kind in ("run", "stop", "measure", "return"):
            try:
                if kind == "return":
                    self.show_again(content.get("index"))
                else:
                    getattr(self, kind)()
            except Exception as error:
                self._report(kind, payloads.sentence(error))

    def _report(self, kind: str, sentence: str) -> None:
        """Show why what a button asked for was refused."""
        if kind == "measure":
            self._set(_effect={"error": sentence, "done": True})
        elif kind == "return" or self.state in ("running", "stopping"):  # another run goes on
            self._set(_trouble=sentence)
        else:
            self._runner.refuse(sentence)

    # ---- showing and closing ----

    @property
    def _on_view(self) -> HeadScores | None:
        """``scores``, or those of an earlier run that the maps show where the last gave none."""
        return self.scores or next(
            (scores for scores in self.history if scores is self._shown), None
        )

    def _drawn(self) -> tuple[HeadScores, settings.Settings]:
        """What a figure shows: finished scores only, as it cannot mark a cell as not scored."""
        if (scores := self._on_view) is None:
            raise ValueError("nothing is scored yet, so there is no figure: lab.run() first.")
        shown = {name: getattr(self, name) for name in settings.NAMES}
        shown["tasks"] = [name for name in self.tasks if name in scores.tasks]
        shown["task"] = self.task if self.task in scores.tasks else None
        return scores, settings.settings(scores, **shown)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        self.preview = "png" if self._on_view is not None else None
        return super()._repr_mimebundle_(**kwargs)


def live(
    model: Model | Any = None,
    tasks: Task | str | Iterable[Task] = "math-syntax",
    method: str = "gradient",
    *,
    prompts: int | None = PROMPTS,
    seed: int = 0,
    **traits: Any,
) -> Lab:
    """The explorer with the model behind it: run and stop ``method`` on ``tasks``, type a
    prompt, knock heads out. Nothing runs before it is asked for.

    ``model`` is what :func:`headwidget.load` gives or takes; without one, the embedded model.
    ``prompts`` of each task are scored (None: all). Further keywords set traits of the
    :class:`Lab` (``prompt="The capital of France is"``, ``view="agreement"``, …).
    """
    run_settings.check_keywords(traits, (*LAB_TRAITS, "selected", "layout", *settings.NAMES))
    loaded = model if isinstance(model, Model) else load(model)
    sources = score.listed(tasks, seed)
    registry.find(method)
    return Lab(loaded, sources, method=method, prompts=prompts, seed=seed, **traits)

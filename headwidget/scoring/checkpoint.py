"""Checkpoints: what a run has scored, kept in a file as it lands, so that a run that was ended
goes on where it stood.

The file is a journal (:mod:`headwidget.scoring.journal`). Its first record says what is scored:
model, weights, method, options, prompts, seed. Only a run that asks for the same goes on with it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwidget.scores.file_errors import quoted
from headwidget.scores.record import checked_json
from headwidget.scoring import code_digest, facts, registry, results
from headwidget.scoring.contract import Chunk, Report, TaskReport
from headwidget.scoring.encode import EncodedTask
from headwidget.scoring.journal import Entry, Journal
from headwidget.tasks import Task

if TYPE_CHECKING:
    from headwidget.models import Model
    from headwidget.scoring.run import Scoring

VERSION = 1
_OF_MODEL = ("model", "revision", "layers x heads", "dtype", "weights", "configuration")
_ASPECT = "aspect "
"""Begins the name of an aspect's array in a chunk's record."""
STATE_SECONDS = 1.0
"""The least time between two records of what a method keeps of its own work."""
MOST_BYTES = 2**32
"""The most bytes of scores that the labels of a file may ask for."""
_UNFIT = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(ArithmeticError, RuntimeError, MemoryError),
)
"""What is raised where a record holds something else than it should."""


class Checkpoint:
    """The file of one run.

    Where it cannot be written, ``broken`` says why, and the run goes on without it.
    """

    def __init__(self, path: str | Path) -> None:
        self._journal: Journal | None = Journal(path)
        self.path = self._journal.path
        self.broken: str | None = None
        """Why nothing is written any more, as a sentence."""
        self._states: dict[str, Entry] = {}
        self._pending: dict[str, Chunk] = {}  # by task: the last chunk of a method that trains
        self._state_written = time.monotonic()

    # ---- reading ----

    def restore(self, scoring: Scoring) -> None:
        """Give ``scoring`` what the file holds.

        ``ValueError`` where the file is of something else, with what differs.
        """
        assert self._journal is not None
        asked = identity(scoring)
        entries = self._journal.entries()
        first = next(entries, None)
        if first is None:
            self._append(Entry("begin", asked))
            return
        self._check(first, asked)
        for entry in entries:
            try:
                self._take(entry, scoring)
            except _UNFIT as error:
                raise ValueError(
                    f"checkpoint {quoted(self.path)} holds what does not fit this run: "
                    f"{str(error).rstrip('.')}. Delete it and score anew."
                ) from error

    def _check(self, first: Entry, asked: Mapping[str, Any]) -> None:
        kept = first.facts
        if first.kind != "begin" or type(kept.get("version")) is not int:
            raise ValueError(f"{quoted(self.path)} is not a checkpoint of a run.")
        if kept["version"] > VERSION:
            raise ValueError(
                f"checkpoint {quoted(self.path)} was written by a newer headwidget; upgrade to go "
                "on with it."
            )
        if (difference := _difference(kept, asked)) is not None:
            raise ValueError(
                f"checkpoint {quoted(self.path)} is of another run: {difference}. Give this run a "
                "path of its own, or delete the file."
            )

    def _take(self, entry: Entry, scoring: Scoring) -> None:
        """Give ``scoring`` a record."""
        if entry.kind == "chunk":
            scoring.land_again(_chunk(entry))
        elif entry.kind == "report":
            report = _report(entry)
            _check_labels(report, scoring)
            scoring.report_again(report, entry.facts["tasks_of_job"])
        elif entry.kind == "state":
            self._states[entry.facts["name"]] = Entry("state", entry.facts["facts"], entry.arrays)
        elif entry.kind == "batch":
            scoring.batch_halved(_whole(entry.facts["size"]))
        elif entry.kind == "end":
            scoring.end_again(entry.facts["tasks"])
        else:
            raise ValueError(f"a record of kind {entry.kind!r:.40}")

    # ---- writing ----

    def landed(self, chunk: Chunk) -> None:
        """Keep a chunk. One of a method that trains is kept with the method's next state."""
        if chunk.state:
            self._pending[chunk.task] = chunk
        else:
            self._append(_of_chunk(chunk))

    def reported(self, report: Report, tasks: list[str]) -> None:
        """Keep what a method reported of a job's tasks."""
        self._append(_of_report(report, tasks))

    def halved(self, size: int) -> None:
        """Keep that the batch is so large from now on."""
        self._append(Entry("batch", {"size": size}))

    def ended(self, tasks: list[str]) -> None:
        """Keep that all of these tasks is scored."""
        self._flush()
        self._append(Entry("end", {"tasks": tasks}))

    def get(self, name: str) -> Entry | None:
        """What the method kept under this name before."""
        return self._states.get(name)

    def due(self) -> bool:
        """Is it time for a method to keep what it has?"""
        return self.broken is None and time.monotonic() - self._state_written >= STATE_SECONDS

    def put(self, name: str, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Keep what a method gives, in place of what it kept under this name before."""
        self._flush()
        self._append(Entry("state", {"name": name, "facts": dict(facts)}, arrays))
        self._state_written = time.monotonic()

    def _flush(self) -> None:
        for chunk in self._pending.values():
            self._append(_of_chunk(chunk))
        self._pending.clear()

    def _append(self, entry: Entry) -> None:
        if self.broken is not None or self._journal is None:
            return
        try:
            self._journal.append(entry)
        except OSError as error:
            self._break(error)

    def _break(self, error: OSError) -> None:
        self.broken = (
            f"The checkpoint is not written any more: {str(error).rstrip('.')}. Scoring goes on "
            "without it; save the scores when it is done."
        )

    def close(self) -> None:
        """Write what is pending, wait for the disk, and close the file."""
        if (journal := self._journal) is None:
            return
        try:
            self._flush()
            if self.broken is None:
                journal.sync()
        except OSError as error:
            self._break(error)
        finally:
            self._journal = None
            journal.close()


# ---- what is scored ----


def identity(scoring: Scoring) -> dict[str, Any]:
    """What a run scores, as JSON: two runs with the same give the same scores."""
    import headwidget

    model, method = scoring.model, scoring.method
    return {
        "version": VERSION,
        "headwidget": headwidget.__version__,
        "model": model.name,
        "revision": model.revision,
        "weights": model.fingerprint(),
        "configuration": _configuration(model),
        "dtype": facts.dtype(model),
        "layers x heads": " x ".join(map(str, model.shape)),
        "hooks": list(model.hooked),
        "heads changed": list(results.heads_changed(scoring)),
        "gates": None if scoring.gates is None else scoring.gates.tolist(),
        "method": method.name,
        "code": None if registry.is_built_in(method.name) else code_digest.digest(method.run),
        "options": _options(scoring.options),
        "seed": scoring.seed,
        "batch_size": scoring.asked_batch_size,
        "tasks": {task.name: _digest(task) for task in scoring.tasks},
        "prompts": {task.name: len(task.examples) for task in scoring.tasks},
    }


def _difference(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """The first thing in which two runs differ, as a part of a sentence."""
    for name in (*_OF_MODEL, "method", "options"):
        if kept.get(name) != asked[name]:
            has, wants = (_short(side.get(name)) for side in (kept, asked))
            return f"its {name} is {has}, this run's {wants}"
    if kept.get("code") != asked["code"]:
        return f"method {asked['method']!r} was changed since"
    if (difference := _task_difference(kept, asked)) is not None:
        return difference
    for name, value in asked.items():
        if kept.get(name) != value:
            return f"its {name} is {_short(kept.get(name))}, this run's {_short(value)}"
    return None


def _task_difference(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    mine, theirs = asked["tasks"], kept.get("tasks")
    if not isinstance(theirs, dict) or list(theirs) != list(mine):
        names = [", ".join(map(repr, list(tasks or ())[:5])) for tasks in (theirs, mine)]
        return f"its tasks are {names[0] or 'none'}, this run's {names[1]}"
    for name, digest in mine.items():
        if theirs[name] != digest:
            return f"task {name!r} has other prompts or answers there"
    return None


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return repr(text) if len(text) <= 120 else repr(text[:120] + "…")


def _digest(task: EncodedTask) -> str:
    """Tells tasks apart by what the model reads and what it is asked, in their order."""
    hashed = hashlib.blake2b(digest_size=16)
    for example in task.examples:
        read = example.ids, example.source, example.at
        asked = example.answer, example.parting, example.foil
        # a label names an image or sound by its content
        hashed.update(repr((example.label, read, asked)).encode(errors="surrogatepass"))
    hashed.update(repr(task.held_out).encode())
    return hashed.hexdigest()


def _configuration(model: Model) -> str | None:
    """Tells apart models of the same weights whose configurations differ (positions, windows)."""
    try:
        content = dict(model.config.to_dict())
        for name in ("transformers_version", "_name_or_path", "_commit_hash"):
            content.pop(name, None)
        text = json.dumps(content, sort_keys=True, default=lambda value: type(value).__qualname__)
    except (AttributeError, TypeError, ValueError):  # a user's own kind of configuration
        return None
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _options(options: Any) -> Any:
    """A method's options as JSON gives them back; a task among them with its prompts."""
    values = facts.of_options(options)
    for name in values:
        if isinstance(task := getattr(options, name), Task):
            shown = [(example.prompt, example.answer, example.foil) for example in task.examples]
            digest = hashlib.blake2b(repr(shown).encode(errors="surrogatepass"), digest_size=8)
            values[name] = f"{task.name} ({digest.hexdigest()})"
    return json.loads(json.dumps(values))


# ---- records ----


def _whole(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"a batch of {value!r:.40} prompts")
    return value


def _check_labels(report: Report, scoring: Scoring) -> None:
    """Refuse labels of so many runs that their scores would fill the memory."""
    layers, heads = scoring.model.shape
    for said in report.tasks.values():
        if said.labels is not None and 4 * len(said.labels) * layers * heads > MOST_BYTES:
            raise ValueError(f"labels of {len(said.labels)} runs")


def _of_chunk(chunk: Chunk) -> Entry:
    rows = chunk.layers
    facts_of = {
        "task": chunk.task,
        "runs": [int(run) for run in chunk.runs],
        "rows": [rows.start, rows.stop, rows.step],
    }
    arrays: dict[str, Any] = {"values": chunk.values}
    if chunk.correct is not None:
        arrays["correct"] = chunk.correct
    for name, values in chunk.aspects.items():
        arrays[_ASPECT + name] = values
    return Entry("chunk", facts_of, arrays)


def _chunk(entry: Entry) -> Chunk:
    arrays = dict(entry.arrays)
    values, correct = arrays.pop("values"), arrays.pop("correct", None)
    return Chunk(
        entry.facts["task"],
        tuple(entry.facts["runs"]),
        slice(*entry.facts["rows"]),
        values,
        correct,
        {name.removeprefix(_ASPECT): array for name, array in arrays.items()},
    )


def _of_report(report: Report, tasks: list[str]) -> Entry:
    by_task, arrays = {}, {}
    for i, (name, said) in enumerate(report.tasks.items()):
        by_task[name] = {
            "runs": None if said.runs is None else [int(run) for run in said.runs],
            "labels": None if said.labels is None else list(said.labels),
            "record": checked_json({"record": said.record})["record"],
        }
        if said.right is not None:
            arrays[f"right {i}"] = np.asarray(said.right, bool)
    record = checked_json({"record": report.record})["record"]
    return Entry("report", {"tasks": by_task, "record": record, "tasks_of_job": tasks}, arrays)


def _report(entry: Entry) -> Report:
    tasks = {}
    for i, (name, said) in enumerate(entry.facts["tasks"].items()):
        tasks[name] = TaskReport(
            None if said["runs"] is None else tuple(said["runs"]),
            None if said["labels"] is None else tuple(said["labels"]),
            entry.arrays.get(f"right {i}"),
            said["record"],
        )
    return Report(tasks, entry.facts["record"])

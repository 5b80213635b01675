"""What a scoring has found, as HeadScores: the numbers, the labels of runs, and the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.scores import HeadScores
from headwidget.scores.record import Dropped, Record, TaskRecord, digest
from headwidget.scoring import doubts, facts
from headwidget.scoring.encode import EncodedTask

if TYPE_CHECKING:
    from headwidget.scoring.run import Scoring


def scores(scoring: Scoring, *, partial: bool) -> HeadScores:
    """What has landed, as HeadScores; what has not is missing (NaN)."""
    begun = {task.name: scoring.begun(task) for task in scoring.tasks}
    tasks = [task for task in scoring.tasks if begun[task.name]]
    arrays: dict[str, dict[str, npt.NDArray[np.float32]]] = {}
    for aspect in scoring.landed.aspects:
        arrays[aspect] = {}
        for task in tasks:
            values = scoring.landed.of(task.name, aspect)
            assert values is not None  # every chunk has all aspects
            arrays[aspect][task.name] = values[begun[task.name]]
    labels = {}
    for task in tasks:
        names = scoring.labels(task)
        labels[task.name] = [names[i] for i in begun[task.name]]
    record = facts.of_run(scoring.model, scoring.options, scoring.seed, scoring.batch_size)
    disturbances = scoring.disturbances(record.weights)
    task_records = {t.name: _task_record(scoring, t, begun[t.name], disturbances) for t in tasks}
    record = dataclasses.replace(
        record,
        **facts.of_method(scoring.method, scoring.options),
        out_of_memory=f"the batch was halved to {scoring.halved[-1]}" if scoring.halved else None,
        partial=partial,
        tasks=task_records,
        heads_changed=heads_changed(scoring),
        heads_not_heeded=scoring.not_heeded or None,
    )
    return _head_scores(scoring, arrays, labels, facts.as_json(record, scoring.report.record))


def heads_changed(scoring: Scoring) -> tuple[str, ...]:
    """The heads that are scaled, in words."""
    if scoring.gates is None:
        return ()
    names = []
    for row, head in np.argwhere(scoring.gates != 1):
        factor = float(scoring.gates[row, head])
        names.append(f"L{scoring.model.layers[row].index} H{head} × {factor:g}")
    return tuple(names)


def snapshot(scoring: Scoring) -> HeadScores:
    """What can be shown now: what has landed of every task; the rest is missing (NaN)."""
    shown, labels = {}, {}
    for task in scoring.tasks:
        values, runs = scoring.landed.of(task.name), scoring.begun(task)
        names = scoring.labels(task)
        if values is None or not runs:
            values = np.full((1, *scoring.model.shape), np.nan, np.float32)
            labels[task.name] = ["not scored yet"]
        else:
            values, labels[task.name] = values[runs], [names[i] for i in runs]
        shown[task.name] = values
    display = Record.from_json(scoring.report.record).display
    record = Record(
        model=scoring.model.name,
        sections=scoring.model.sections,
        **facts.of_method(scoring.method, scoring.options),
        partial=True,
        display=display,
    )
    return _head_scores(scoring, {"": shown}, labels, record)


def _head_scores(
    scoring: Scoring,
    arrays: dict[str, dict[str, npt.NDArray[np.float32]]],
    runs: dict[str, list[str]],
    meta: dict[str, Any] | Record,
) -> HeadScores:
    categories = {
        task.name: task.category
        for task in scoring.tasks
        if task.category is not None and task.name in runs
    }
    return HeadScores.from_arrays(
        arrays.pop("", {}),
        method=scoring.method.name,
        runs=runs,
        layers=[layer.index for layer in scoring.model.layers],
        signed=scoring.method.is_signed(scoring.options),
        ranked_by=scoring.method.ranked_by,
        categories=categories,
        meta=meta,
        aspects=arrays,
    )


def _task_record(
    scoring: Scoring, task: EncodedTask, begun: list[int], disturbances: Sequence[str]
) -> TaskRecord:
    """What is known of a task: prompts, what was dropped, accuracy, warnings.

    What the method reported of the task itself comes first.
    """
    dropped = [scoring.dropped[task.name]] if task.name in scoring.dropped else []
    if missing := scoring.expected(task) - len(begun):
        dropped.append(Dropped("scoring was stopped before it", missing))
    accuracy = _task_accuracy(scoring, task, begun)
    report = scoring.reported(task)
    # Where runs are fits, or held-out prompts, the method was fitted on the task's examples.
    fitted = report.labels is not None or report.runs is not None
    measured = dataclasses.replace(
        accuracy,
        prompts=len(task.examples) if report.labels is not None else len(begun),
        dropped=tuple(dropped),
        before_prompt=task.before,
        tokenised_differently_with_answer=task.joint_differs,
        made_from=tuple(digest(e.label) for e in task.examples) if fitted else (),
    )
    record = TaskRecord.from_json({**measured.to_json(), **report.record})
    chance = doubts.no_better_than_chance(accuracy, scoring.method.chance_consequence)
    warnings = [record.warning, chance, few_right(scoring, task.name, accuracy), *disturbances]
    text = " ".join(warning for warning in warnings if warning)
    return dataclasses.replace(record, warning=text or None)


def few_right(scoring: Scoring, name: str, accuracy: TaskRecord) -> str | None:
    """A sentence where the model answers (nearly) none of a task's prompts right."""
    asked = [source.examples for source in scoring.sources if source.name == name]
    model = scoring.model
    continues = not (model.encoder or model.encoder_decoder or model.classifier)
    return doubts.few_right(accuracy, asked[0] if asked else (), continues=continues)


def _task_accuracy(scoring: Scoring, task: EncodedTask, begun: list[int]) -> TaskRecord:
    """How well the model does a task: measured before, reported, or seen while scoring."""
    if task.name in scoring.accuracy:
        return scoring.accuracy[task.name]
    if (right := scoring.reported(task).right) is not None:
        return facts.accuracy(task.examples, right)
    asked = [run for run in scoring.landed.asked(task.name) if run in set(begun)]
    if not asked:
        return TaskRecord()
    right = scoring.landed.correct(task.name)
    return facts.accuracy([task.examples[i] for i in asked], right[:, asked])

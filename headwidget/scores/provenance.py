"""Where scores come from, as short texts that people read: beside the heatmaps, under a page."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import headwidget
from headwidget.scores.record import ProbeRecord, Record, digest

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores

_FIELDS = ("revision", "weights", "dtype", "device", "seed", "options", "versions")
"""The fields of a record that are shown as they are."""
_MOST_LETTERS = 240
_MOST_IN_PARAGRAPH = 600
_MOST_PARAGRAPHS = 6


def about(scores: HeadScores) -> list[list[str]]:
    """Pairs of a label and a text, only of what is known.

    >>> from headwidget import HeadScores
    >>> meta = {"model": "tiny", "options": {"replace": "mean"}}
    >>> about(HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta=meta))[:3]
    [['model', 'tiny'], ['method', 'mine'], ['options', 'replace mean']]
    """
    record = scores.record
    probe = record.probe or ProbeRecord()
    pairs = [
        ("model", _written([record], "model")),
        ("method", _short(scores.method)),
        ("probe", _probe(probe)),
        ("taken for another", _confused(probe)),
        ("left out", _written(record.sources, "left_out")),
    ]
    pairs += [(field, _written(record.sources, field)) for field in _FIELDS]
    pairs += [
        ("heads", _written(record.sources, "heads_found")),
        ("hooks of the user's", _written(record.sources, "hooks")),
        ("heads changed", _written(record.sources, "heads_changed")),
        ("changes not heeded", _not_heeded(record)),
        ("prompts", "one at a time" if any(s.one_by_one for s in record.sources) else ""),
        ("slopes", _slopes(record)),
    ]
    if scores.partial:
        pairs.append(("partial", "stopped before all was scored"))
    pairs.append(("drawn by", f"headwidget {headwidget.__version__}"))
    return [[label, text] for label, text in pairs if text]


def heads_changed(scores: HeadScores) -> str:
    """That the model was scored with heads changed; empty where it was not.

    >>> from headwidget import HeadScores
    >>> meta = {"heads_changed": ["L13 H4 × 0"]}
    >>> heads_changed(HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta=meta))
    '1 head changed'
    """
    count = max(len(source.heads_changed) for source in scores.record.sources)
    return f"{count} head{'s' * (count != 1)} changed" if count else ""


def method_name(scores: HeadScores) -> str:
    """The method, and whether the model was scored with heads changed."""
    return " · ".join(filter(None, (scores.method, heads_changed(scores))))


def _not_heeded(record: Record) -> str:
    counts = [source.heads_not_heeded for source in record.sources if source.heads_not_heeded]
    if not counts:
        return ""
    return f"{max(counts)} head{'s' * (max(counts) != 1)} changed in the lab, scored unchanged"


def note(scores: HeadScores, task: str) -> str | None:
    """How well the model did a task, and how many of its prompts were left out.

    None when nothing is known.

    >>> from headwidget import HeadScores
    >>> known = {"accuracy": 0.95, "beats_foil": 0.999, "dropped": [{"why": "…", "count": 3}]}
    >>> meta = {"tasks": {"copy": known}}
    >>> note(HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta=meta), "copy")
    '95% right, beats its foil 99%, 3 prompts dropped'
    """
    record = scores.record.task(task)
    texts = []
    if (right := _percent(record.accuracy)) is not None:
        texts.append(f"{right} right")
    if (beats := _percent(record.beats_foil)) is not None:
        texts.append(f"beats its foil {beats}")
    if dropped := sum(drop.count or 0 for drop in record.dropped):
        what = "pair" if record.counted == "pair" else "prompt"
        texts.append(f"{dropped} {what}{'s' * (dropped != 1)} dropped")
    return ", ".join(texts) or None


def warning(scores: HeadScores, task: str) -> str | None:
    """Why a task's scores should not be believed, in a sentence; None when nothing says so."""
    return _short((scores.record.task(task).warning or "").strip()) or None


def floor(scores: HeadScores, task: str) -> float | None:
    """What a score of this task reaches by chance; None where the method has no control."""
    value = scores.record.floor.get(task)
    return float(value) if value is not None and 0 < value < 3e38 else None


def method(scores: HeadScores) -> dict[str, Any]:
    """What a score means and how the method works, in the method's own words.

    Only what is known, and is the same of all scores that were merged.
    """
    sources = scores.record.sources
    meanings = {_short((record.meaning or "").strip()) for record in sources}
    texts = {tuple(text[:_MOST_IN_PARAGRAPH] for text in record.explained) for record in sources}
    papers = {record.paper for record in sources}
    said = {
        "meaning": meanings.pop() if len(meanings) == 1 else "",
        "explained": list(texts.pop())[:_MOST_PARAGRAPHS] if len(texts) == 1 else [],
        "paper": [_short(text) for text in papers.pop()] if len(papers) == 1 else [],
    }
    return {name: text for name, text in said.items() if text}


def known_prompts(scores: HeadScores, task: str) -> Callable[[str], bool]:
    """Whether scores were made from a task's prompt (with its answer).

    They were where it was scored, or where something was fitted on it or against it.
    """
    scored = set(scores.runs(task)) if task in scores.tasks else set()
    fitted: set[str] = set()
    for record in (scores.record, *scores.record.merged):
        fitted.update(record.task(task).made_from)
        for other in record.tasks.values():
            if other.contrast is not None and other.contrast.task == task:
                fitted.update(other.contrast.made_from)
    return lambda prompt: prompt in scored or digest(prompt) in fitted


def display(scores: HeadScores, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The settings that scores are shown with at first, where their method asks for some.

    A probe's are shown as shares, relations by category at 0.15. What is ``given`` comes
    first, and a threshold that belongs to one rule does not go with another.
    """
    asked = scores.record.display
    settings: dict[str, Any] = {}
    if asked.normalize is not None:
        settings["normalize"] = asked.normalize
    if asked.view is not None:
        settings["view"] = asked.view
    by_value = given.get("rule", "value") == "value"
    if asked.threshold is not None and abs(asked.threshold) <= sys.float_info.max and by_value:
        settings["threshold"] = float(asked.threshold)
    return {**settings, **given}


def axes(scores: HeadScores) -> list[str]:
    """What rows and columns are called: "Layer" and "Head" where the record has no other names."""
    if scores.record.axes:
        return list(scores.record.axes)
    stacks = ", ".join(name for name, _ in sections(scores))
    return [stacks.capitalize() or "Layer", "Head"]


def sections(scores: HeadScores) -> tuple[tuple[str, int], ...]:
    """The sections of the rows, where the record has some that are all the rows."""
    named = scores.record.sections
    return named if sum(count for _, count in named) == scores.shape[0] else ()


def layer_labels(scores: HeadScores) -> list[str]:
    """What each row's layer is called: its number, or E0, D0, C0 in sections.

    >>> import headwidget as hw, numpy as np
    >>> record = {"sections": [["encoder", 2], ["cross", 1]]}
    >>> maps = {"t": np.zeros((1, 3, 2))}
    >>> layer_labels(hw.HeadScores.from_arrays(maps, method="m", meta=record))
    ['E0', 'E1', 'C0']
    """
    labels: list[str] = []
    for name, count in sections(scores):
        labels += [f"{name[0].upper()}{number}" for number in range(count)]
    return labels or [str(layer) for layer in scores.layers]


def head_name(scores: HeadScores, layer: int, head: int) -> str:
    """ "L12 H3"; in sections "D2 H3"."""
    label = layer_labels(scores)[scores.layers.index(layer)]
    return f"{label if sections(scores) else f'L{layer}'} H{head}"


def line(scores: HeadScores) -> str:
    """All of it in one line, with the number of runs of each task.

    Many tasks with the same number are counted together.

    >>> from headwidget import HeadScores
    >>> meta = {"model": "tiny", "seed": 0}
    >>> scores = HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta=meta)
    >>> line(scores).split(" · ")[:3]
    ['model tiny', 'method mine', 'copy: 1 run']
    """
    texts = []
    for label, text in about(scores):
        texts.append(text if label == "partial" else f"{label} {text}")
        if label == "method":
            texts.append(_runs(scores))
    return " · ".join(texts)


def _runs(scores: HeadScores) -> str:
    counts = {task: len(scores.runs(task)) for task in scores.tasks}
    texts = {task: f"{count} run{'s' * (count != 1)}" for task, count in counts.items()}
    if len(texts) > 3 and len(set(texts.values())) == 1:
        return f"{len(texts)} tasks, {texts[scores.tasks[0]]} each"
    return ", ".join(f"{task}: {text}" for task, text in texts.items())


def _probe(probe: ProbeRecord) -> str:
    """How often a probe is right on held-out examples, and how often something simpler is."""
    right = _percent(probe.accuracy)
    if right is None:
        return ""
    simpler = {
        "chance": _percent(probe.chance),
        "shuffled labels": _percent(probe.control_accuracy),
        "words of the prompts alone": _percent(probe.surface),
    }
    texts = [f"{what} {share}" for what, share in simpler.items() if share is not None]
    return "; ".join(
        [f"{right} of held-out examples right", *([", ".join(texts)] if texts else [])]
    )


def _slopes(record: Record) -> str:
    """How far slopes were off what small steps of the gates gave, at most."""
    offs = [task.slopes_off for task in record.tasks.values() if task.slopes_off is not None]
    if not offs:
        return ""
    rounding = ", the rounding of 16 bits among it" if "16" in (record.dtype or "") else ""
    return f"within {max(offs):.1%} of small steps of the gates{rounding}"


def _confused(probe: ProbeRecord) -> str:
    """Which tasks a probe takes for which, most often first."""
    count = len(probe.tasks)
    if [len(row) for row in probe.confusion] != [count] * count:
        return ""
    pairs = []
    for task, row in zip(probe.tasks, probe.confusion):
        for other, times in zip(probe.tasks, row):
            if other != task and times:
                pairs.append((times, f"{task} for {other} {times}"))
    pairs.sort(key=lambda pair: -pair[0])
    return _short(", ".join(text for _, text in pairs))


def _written(records: Sequence[Record], field: str) -> str:
    """What the records have in a field, of whatever kind, each text once."""
    texts = [_text(record.as_written(field)) for record in records]
    return _short("; ".join(dict.fromkeys(text for text in texts if text)))


def _text(value: object) -> str:
    """A value of JSON as people write it; empty for what is not known.

    >>> _text({"replace": "mean", "where": None}), _text(0), _text(None), _text([1, "a"])
    ('replace mean, where none', '0', '', '1, a')
    """
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item) or 'none'}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) or "none" for item in value)
    return json.dumps(value)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def _percent(share: float | None) -> str | None:
    """A share as whole percents, rounded down, so that 100% means all; None for no share."""
    if share is None or not 0 <= share <= 1:
        return None
    return f"{math.floor(share * 100 + 1e-9)}%"

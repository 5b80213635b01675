"""Where scores come from, as short texts that people read: beside the heatmaps, and at the foot of an exported page."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import headwidget

if TYPE_CHECKING:
    from headwidget.scores.head_scores import HeadScores

_KEYS = ("revision", "weights", "dtype", "device", "seed", "options", "versions")
_LONGEST = 240


def about(scores: HeadScores) -> list[list[str]]:
    """Pairs of a label and a text, only of what is known.

    >>> from headwidget import HeadScores
    >>> about(HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta={"model": "tiny", "options": {"replace": "mean"}}))[:3]
    [['model', 'tiny'], ['method', 'mine'], ['options', 'replace mean']]
    """
    sources = scores.meta.get("merged") or [
        scores.meta
    ]  # merged scores name each device, seed and version once
    known = [("model", _known([scores.meta], "model")), ("method", _short(scores.method))]
    known += [
        ("probe", _probe(scores)),
        ("taken for another", _confused(scores)),
        ("left out", _known(sources, "left_out")),
    ]
    known += [(key, _known(sources, key)) for key in _KEYS]
    if scores.partial:
        known.append(("partial", "stopped before every prompt was done"))
    known.append(("drawn by", f"headwidget {headwidget.__version__}"))
    return [[label, text] for label, text in known if text]


def note(scores: HeadScores, task: str) -> str | None:
    """How well the model did a task, and how many of its prompts were left out; None when nothing is known.

    >>> from headwidget import HeadScores
    >>> meta = {"tasks": {"copy": {"accuracy": 0.95, "beats_foil": 0.999, "dropped": [{"why": "…", "count": 3}]}}}
    >>> note(HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta=meta), "copy")
    '95% right, beats its foil 99%, 3 prompts dropped'
    """
    known = scores.meta.get("tasks", {}).get(task, {})
    parts = []
    if (right := _percent(known.get("accuracy"))) is not None:
        parts.append(f"{right} right")
    if (beats := _percent(known.get("beats_foil"))) is not None:
        parts.append(f"beats its foil {beats}")
    dropped = known.get("dropped")
    counts = (
        [drop.get("count") for drop in dropped if isinstance(drop, Mapping)]
        if isinstance(dropped, list)
        else []
    )
    if gone := sum(count for count in counts if type(count) is int):
        what = "pair" if known.get("counted") == "pair" else "prompt"
        parts.append(f"{gone} {what}{'s' * (gone != 1)} dropped")
    return ", ".join(parts) or None


def warning(scores: HeadScores, task: str) -> str | None:
    """Why a task's scores should not be believed, in a sentence; None when nothing speaks against them."""
    text = scores.meta.get("tasks", {}).get(task, {}).get("warning")
    return _short(text.strip()) if isinstance(text, str) and text.strip() else None


def floor(scores: HeadScores, task: str) -> float | None:
    """What a score of this task reaches by chance alone, where the method has a control; None where it has none."""
    floors = scores.meta.get("floor")
    value = floors.get(task) if isinstance(floors, Mapping) else None
    return float(value) if isinstance(value, (int, float)) and 0 < value < 3e38 else None


def digest(prompt: str) -> str:
    """A prompt by a short name of its own, as scores remember what they were fitted on."""
    return hashlib.blake2b(prompt.encode(errors="surrogatepass"), digest_size=6).hexdigest()


def known_prompts(scores: HeadScores, task: str) -> Callable[[str], bool]:
    """Whether scores were made from a task's prompt (with its answer): it was scored, or something was fitted on it, or against it."""
    scored = set(scores.runs(task)) if task in scores.tasks else set()
    tasks = [
        some
        for source in (scores.meta, *(scores.meta.get("merged") or []))
        if isinstance(some := source.get("tasks"), Mapping)
    ]
    against = [
        part.get("contrast")
        for some in tasks
        for part in some.values()
        if isinstance(part, Mapping)
    ]
    parts = [
        *(some.get(task) for some in tasks),
        *(one for one in against if isinstance(one, Mapping) and one.get("task") == task),
    ]
    lists = [part.get("made_from") for part in parts if isinstance(part, Mapping)]
    fitted = {
        one
        for given in lists
        if isinstance(given, (list, tuple))
        for one in given
        if isinstance(one, str)
    }
    return lambda prompt: prompt in scored or digest(prompt) in fitted


def display(scores: HeadScores, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The settings that scores are shown with at first, where their method asks for some: a probe's as shares, relations by category at 0.15.

    What is ``given`` comes first, and a threshold that belongs to one rule does not go with another.
    """
    asked = scores.meta.get("display")
    asked = asked if isinstance(asked, Mapping) else {}
    found: dict[str, Any] = {}
    if asked.get("normalize") == "share":
        found["normalize"] = "share"
    if isinstance(asked.get("view"), str):
        found["view"] = asked["view"]
    if (
        type(asked.get("threshold")) in (int, float)
        and math.isfinite(asked["threshold"])
        and given.get("rule", "value") == "value"
    ):
        found["threshold"] = float(asked["threshold"])
    return {**found, **given}


def _probe(scores: HeadScores) -> str:
    """What a probe's importance rests on: how often it is right on held-out examples, and how often something simpler is."""
    known = scores.meta.get("probe")
    if not isinstance(known, Mapping) or (right := _percent(known.get("accuracy"))) is None:
        return ""
    surface = known.get("surface")
    simpler = [
        ("chance", _percent(known.get("chance"))),
        ("shuffled labels", _percent(known.get("control_accuracy"))),
    ]
    simpler.append(
        (
            "words of the prompts alone",
            _percent(surface.get("accuracy")) if isinstance(surface, Mapping) else None,
        )
    )
    return f"{right} of held-out examples right; {', '.join(f'{what} {share}' for what, share in simpler if share is not None)}"


def _confused(scores: HeadScores) -> str:
    """Which tasks a probe takes for which, most often first."""
    known = scores.meta.get("probe")
    table, names = (
        (known.get("confusion"), known.get("tasks")) if isinstance(known, Mapping) else (None, None)
    )
    if (
        not isinstance(table, list)
        or not isinstance(names, list)
        or [len(row) for row in table if isinstance(row, list)] != [len(names)] * len(names)
    ):
        return ""
    pairs = [
        (row[j], names[i], names[j])
        for i, row in enumerate(table)
        for j in range(len(names))
        if i != j and type(row[j]) is int and row[j]
    ]
    return _short(
        ", ".join(
            f"{name} for {other} {count}"
            for count, name, other in sorted(pairs, key=lambda pair: -pair[0])
        )
    )


def axes(scores: HeadScores) -> list[str]:
    """What rows and columns are called: "Layer" and "Head", or the two texts of ``meta["axes"]``."""
    given = scores.meta.get("axes")
    if (
        isinstance(given, list)
        and len(given) == 2
        and all(isinstance(text, str) and text.strip() for text in given)
    ):
        return list(given)
    return ["Layer", "Head"]


def line(scores: HeadScores) -> str:
    """All of it in one line, with the runs of each task, or of all at once where they are many and alike.

    >>> from headwidget import HeadScores
    >>> line(HeadScores.from_arrays({"copy": [[1.0]]}, method="mine", meta={"model": "tiny", "seed": 0})).split(" · ")[:3]
    ['model tiny', 'method mine', 'copy: 1 run']
    """
    pairs = [text if label == "partial" else f"{label} {text}" for label, text in about(scores)]
    at = 1 + next(i for i, part in enumerate(pairs) if part.startswith("method "))
    runs = {
        name: f"{len(scores.runs(name))} run{'s' * (len(scores.runs(name)) != 1)}"
        for name in scores.tasks
    }
    alike = len(runs) > 3 and len(set(runs.values())) == 1
    counted = (
        f"{len(runs)} tasks, {runs[scores.tasks[0]]} each"
        if alike
        else ", ".join(f"{name}: {text}" for name, text in runs.items())
    )
    return " · ".join([*pairs[:at], counted, *pairs[at:]])


def _known(sources: list[Mapping[str, Any]], key: str) -> str:
    """What the sources say under a key, each text once."""
    texts = (_text(source.get(key)) for source in sources)
    return _short("; ".join(dict.fromkeys(text for text in texts if text)))


def _text(value: object) -> str:
    """A value of JSON as people write it; nothing for what is not known.

    >>> _text({"replace": "mean", "where": None}), _text(0), _text(None), _text([1, "a"])
    ('replace mean, where none', '0', '', '1, a')
    """
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(part) or 'none'}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(_text(part) or "none" for part in value)
    return json.dumps(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _percent(share: Any) -> str | None:
    """A share as whole percents, rounded down: 100% means all of them."""
    if type(share) not in (int, float) or not 0 <= share <= 1:
        return None
    return f"{math.floor(share * 100 + 1e-9)}%"

"""The record that travels with scores: where they come from and what they are worth, typed.

``scores.meta`` is the record as JSON, as a file holds it; ``scores.record`` is the same
with names and kinds. Only this module reads it by its keys. A key that is not written here,
or a value of another kind, is kept in ``extra`` and written back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headwidget.scores.json_fields import (
    OTHER_KIND,
    JsonFields,
    by_name,
    fields_of,
    flag,
    json_object,
    list_of,
    number,
    one_of,
    optional,
    several,
    text,
    whole,
)


@dataclass(frozen=True)
class Dropped(JsonFields):
    """Prompts of a task that were left out, for one reason."""

    why: str | None = optional(text)
    count: int | None = optional(whole)
    prompts: tuple[str, ...] = several(text)


@dataclass(frozen=True)
class Contrast(JsonFields):
    """The prompts of another task that gates were fitted against."""

    task: str | None = optional(text)
    made_from: tuple[str, ...] = several(text)
    """A :func:`digest` of each."""


@dataclass(frozen=True)
class TaskRecord(JsonFields):
    """What is known of one task's scores."""

    prompts: int | None = optional(whole)
    dropped: tuple[Dropped, ...] = several(fields_of(Dropped))
    counted: str | None = optional(text)
    """What is counted: "pair" for relations; prompts where it is not said."""
    before_prompt: tuple[str, ...] = several(text)
    """The special tokens that the tokenizer puts before a prompt."""
    tokenised_differently_with_answer: int | None = optional(whole)
    asked: int | None = optional(whole)
    """How many prompts ``accuracy`` is taken over."""
    accuracy: float | None = optional(number)
    """The share of prompts that the model answers right."""
    foils: int | None = optional(whole)
    """How many prompts have a foil."""
    beats_foil: float | None = optional(number)
    """The share of those whose answer beats it."""
    warning: str | None = optional(text)
    """Why the scores should not be believed, in a sentence."""
    slopes_off: float | None = optional(number)
    """How far slopes were off what small steps of the gates gave, relative to their length."""
    made_from: tuple[str, ...] = several(text)
    """A :func:`digest` of each prompt that something was fitted on."""
    contrast: Contrast | None = optional(fields_of(Contrast))  # noqa: RUF009
    fitted_on: int | None = optional(whole)
    """How many prompts each of a probe's fits saw."""
    k: int | None = optional(whole)
    """Relations: the target must be among this many tokens."""
    pairs: int | None = optional(whole)
    gating: Mapping[str, Any] = by_name(json_object)
    """Loss and regulariser of every update, by stage."""
    paired: bool | None = optional(flag)
    """A comparison's difference: was it taken prompt by prompt?"""


@dataclass(frozen=True)
class ProbeRecord(JsonFields):
    """What a probe's scores rest on."""

    accuracy: float | None = optional(number)
    """The share of held-out examples whose task the probe finds."""
    accuracy_by_task: Mapping[str, float] = by_name(number)
    chance: float | None = optional(number)
    """What always naming the largest task gets right."""
    chance_by_task: float | None = optional(number)
    above_chance_from: float | None = optional(number)
    """The least accuracy that is more than chance."""
    surface: float | None = optional(number)
    """What the words of the prompts alone get right."""
    control_accuracy: float | None = optional(number)
    """What a probe that is trained on shuffled labels gets right."""
    tasks: tuple[str, ...] = several(text)
    confusion: tuple[tuple[int, ...], ...] = several(list_of(whole))
    """(task, taken for): how many held-out examples."""
    epochs: tuple[int, ...] = several(whole)
    seeds: int | None = optional(whole)
    folds: int | None = optional(whole)
    train: int | None = optional(whole)
    validation: int | None = optional(whole)
    held_out: int | None = optional(whole)


@dataclass(frozen=True)
class Display(JsonFields):
    """The settings that a method asks to be shown with at first."""

    normalize: str | None = optional(one_of("share"))
    view: str | None = optional(one_of("categories"))
    threshold: float | None = optional(number)


@dataclass(frozen=True)
class ComparedSide(JsonFields):
    """One of the two scores of a comparison, and where its cells are read."""

    name: str | None = optional(text)
    model: str | None = optional(text)
    revision: str | None = optional(text)
    weights: str | None = optional(text)
    family: str | None = optional(text)
    heads_found: str | None = optional(text)
    """How it was known where the model's heads are."""
    dtype: str | None = optional(text)
    options: Mapping[str, Any] | None = optional(json_object)
    seed: int | None = optional(whole)
    method: str | None = optional(text)
    shape: tuple[int, ...] = several(whole)
    layers: tuple[int, ...] = several(whole)
    """The side's own layer in each row of the common grid."""
    heads: Mapping[str, tuple[tuple[int, ...], ...]] = by_name(list_of(list_of(whole)), always=True)
    """By task, the side's own head in each cell; empty where it has the cell's number."""


@dataclass(frozen=True)
class Comparison(JsonFields):
    """What was decided when two scores were compared."""

    names: tuple[str, ...] = several(text)
    tasks: Mapping[str, tuple[str, ...]] = by_name(list_of(text))
    """For each task that both have, the names of its three: a, b and their difference."""
    heads: str | None = optional(text)
    """Compared by "index" or by "rank"."""
    layers: str | None = optional(text)
    """Rows are the same layer "number" or the same relative "depth"."""
    normalize: str | None = optional(text)
    sizes: bool | None = optional(flag)
    paired: tuple[str, ...] = several(text, always=True)
    unpaired: tuple[str, ...] = several(text, always=True)
    sides: tuple[ComparedSide, ...] = several(fields_of(ComparedSide))


UNKNOWN_WEIGHTS = "unknown"
"""The fingerprint of weights that could not be read."""
FINGERPRINT_MARK = "w3-"
"""Begins every fingerprint that tells weights apart. The first ones, without it, did not see
what was done to heads."""


def tells_weights(weights: str | None) -> bool:
    """Does a fingerprint tell weights apart?

    >>> tells_weights("w3-0123456789abcdef"), tells_weights("unknown"), tells_weights(None)
    (True, False, False)
    """
    return weights is not None and weights.startswith(FINGERPRINT_MARK)


def _two_texts(value: Any) -> Any:
    """Two texts that are not empty."""
    texts = list_of(text)(value)
    fine = texts is not OTHER_KIND and len(texts) == len(value) == 2
    return texts if fine and all(label.strip() for label in texts) else OTHER_KIND


def _sections(value: Any) -> Any:
    """Names with a number of rows each."""
    if not isinstance(value, (list, tuple)):
        return OTHER_KIND
    pairs = tuple(tuple(pair) if isinstance(pair, (list, tuple)) else pair for pair in value)
    fine = all(
        type(pair) is tuple
        and [type(item) for item in pair] == [str, int]
        and pair[0].strip()
        and pair[1] > 0
        for pair in pairs
    )
    return pairs if fine else OTHER_KIND


def _merged_source(value: Any) -> Any:
    """The record of scores that were merged; what those were merged from is not looked at."""
    if not isinstance(value, Mapping):
        return OTHER_KIND
    source = Record.from_json({key: item for key, item in value.items() if key != "merged"})
    if "merged" not in value:
        return source
    return replace(source, extra={**source.extra, "merged": value["merged"]})


@dataclass(frozen=True)
class Record(JsonFields):
    """Where scores come from, and per task what they are worth."""

    model: str | None = optional(text)
    revision: str | None = optional(text)
    weights: str | None = optional(text)
    """The fingerprint of the model's weights."""
    family: str | None = optional(text)
    heads_found: str | None = optional(text)
    """How it was known where the model's heads are."""
    n_kv_heads: int | None = optional(whole)
    dtype: str | None = optional(text)
    device: str | None = optional(text)
    attention: str | None = optional(text)
    """The implementation of attention that ran."""
    hooks: tuple[str, ...] = several(text)
    """The modules that carried hooks of the user's own."""
    heads_changed: tuple[str, ...] = several(text)
    """The heads whose outputs were scaled while the model was scored, such as "L13 H4 × 0"."""
    heads_not_heeded: int | None = optional(whole)
    """How many heads were scaled in the lab when this was scored with all heads as they are."""
    one_by_one: bool | None = optional(flag)
    """Were prompts run one at a time, because of such hooks or as they affect each other?"""
    meaning: str | None = optional(text)
    """What a score means: the method's own sentence (``Method.about``)."""
    aspects: Mapping[str, str] = by_name(text)
    """What a score of each aspect means, by the aspect's name (``Method.aspects``)."""
    explained: tuple[str, ...] = several(text)
    """How the method works, in its own words: a paragraph each (``Method.explained``)."""
    paper: tuple[str, ...] = field(default=(), metadata={"read": _two_texts})
    """Where the method is from: authors with the year, and the address."""
    options: Mapping[str, Any] | None = optional(json_object)
    """The method's options, by name."""
    seed: int | None = optional(whole)
    batch_size: int | None = optional(whole)
    out_of_memory: str | None = optional(text)
    versions: Mapping[str, str] = by_name(text)
    """The packages that ran, by name."""
    partial: bool = field(default=False, metadata={"read": bool, "always": True})
    """Was scoring stopped before every prompt was done?"""
    tasks: Mapping[str, TaskRecord] = by_name(fields_of(TaskRecord), always=True)
    probe: ProbeRecord | None = optional(fields_of(ProbeRecord))  # noqa: RUF009
    floor: Mapping[str, float] = by_name(number)
    """By task, what a score reaches by chance, where the method has a control."""
    display: Display = field(default=Display(), metadata={"read": fields_of(Display)})
    left_out: Mapping[str, str] = by_name(text)
    """By task, why it was not scored at all."""
    mlp: bool | None = optional(flag)
    """Relations: did words go through the first MLP?"""
    templates: tuple[str, ...] = several(text)
    """Relations in prompts: the prompts' templates."""
    axes: tuple[str, ...] = field(default=(), metadata={"read": _two_texts})
    """What rows and columns are called, where it is not "Layer" and "Head"."""
    sections: tuple[tuple[str, int], ...] = field(default=(), metadata={"read": _sections})
    """The sections of an encoder-decoder model's rows, and how many rows each has."""
    compare: Comparison | None = optional(fields_of(Comparison))  # noqa: RUF009
    merged: tuple[Record, ...] = several(_merged_source)
    """The records of the scores that were merged into these."""

    def task(self, name: str) -> TaskRecord:
        """What is known of a task; an empty record where nothing is."""
        return self.tasks.get(name) or TaskRecord()

    @property
    def sources(self) -> tuple[Record, ...]:
        """The records of the scores that were merged, or this one alone."""
        return self.merged or (self,)

    def only(self, tasks: Iterable[str]) -> Record:
        """The record of these tasks alone, in this order."""
        kept = list(tasks)
        return replace(
            self,
            tasks={task: self.tasks[task] for task in kept if task in self.tasks},
            floor={task: self.floor[task] for task in kept if task in self.floor},
        )


def of_aspect(meta: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The record of an aspect's scores, as JSON: what a score means is said of the aspect."""
    record = Record.from_json(meta)
    kept = {key: value for key, value in meta.items() if key != "meaning"}
    if name in record.aspects:
        kept["meaning"] = record.aspects[name]
    if record.merged:
        kept["merged"] = [of_aspect(source, name) for source in meta["merged"]]
    return kept


def checked_json(meta: Mapping[str, Any] | Record) -> dict[str, Any]:
    """A copy of a record as JSON keeps it, so that what is shown is what a file will hold."""
    content = meta.to_json() if isinstance(meta, Record) else dict(meta)
    try:
        plain = json.loads(json.dumps(content, allow_nan=False, default=_number))
        json.dumps(plain, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"meta must be plain JSON (text, finite numbers, lists, dicts): {error}."
        ) from error
    tasks, merged = plain.get("tasks", {}), plain.get("merged", [])
    if not isinstance(tasks, dict) or not all(isinstance(t, dict) for t in tasks.values()):
        raise ValueError("meta['tasks'] must be a dict with a dict for each task.")
    if not isinstance(merged, list) or not all(isinstance(m, dict) for m in merged):
        raise ValueError("meta['merged'] must be a list of dicts.")
    return dict(plain)


def _number(value: object) -> Any:
    """numpy's scalars as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def digest(prompt: str) -> str:
    """A short name for a prompt: how a record lists the prompts that something was fitted on."""
    return hashlib.blake2b(prompt.encode(errors="surrogatepass"), digest_size=6).hexdigest()

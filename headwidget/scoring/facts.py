"""Facts that travel with scores: model, options, machine, and how well the model answers."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwidget.models import description
from headwidget.scores.record import Record, TaskRecord
from headwidget.scoring.encode import Encoded, has_foil
from headwidget.scoring.trust import precision
from headwidget.tasks import Task

if TYPE_CHECKING:
    from headwidget.models import Model
    from headwidget.scoring.contract import Method


def of_method(method: Method, options: Any) -> dict[str, Any]:
    """What a method says of itself, as fields of a record."""
    return {
        "meaning": method.meaning(options) or None,
        "aspects": method.aspects,
        "explained": method.explained,
        "paper": method.paper or (),
    }


def of_run(model: Model, options: Any, seed: int, batch_size: int | None) -> Record:
    """What is known of the model, the options and the machine."""
    import torch
    import transformers

    import headwidget

    return Record(
        model=model.name,
        revision=model.revision,
        weights=model.fingerprint(),
        family=model.family.name,
        heads_found=description.how(model),
        sections=model.sections,
        n_kv_heads=model.n_kv_heads,
        dtype=dtype(model),
        device=str(model.device),
        attention=str(getattr(model.config, "_attn_implementation", "")),
        hooks=model.hooked,
        one_by_one=True if model.one_by_one else None,
        options=of_options(options),
        seed=seed,
        batch_size=batch_size,
        versions={
            "headwidget": headwidget.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    )


def dtype(model: Model) -> str:
    """The weights' dtype, and that of an autocast that was on while they ran."""
    weights, computed = (str(d).removeprefix("torch.") for d in (model.dtype, precision(model)))
    return weights if weights == computed else f"{weights}, autocast to {computed}"


def as_json(record: Record, reported: Mapping[str, Any]) -> dict[str, Any]:
    """A run's record as its scores carry it, with what the method reported for all tasks.

    Some facts are written also where they are unknown or empty, so that who reads
    ``scores.meta`` finds them.
    """
    tasks = {
        name: task.to_json(unknown=("dropped", "before_prompt"))
        for name, task in record.tasks.items()
    }
    content = record.to_json(unknown=("revision", "batch_size", "options", "attention"))
    return {**content, **reported, "partial": record.partial, "tasks": tasks}


def of_options(options: Any) -> dict[str, Any]:
    """A method's options as JSON; a task among them by its name."""
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return {
        name: value.name if isinstance(value, Task) else value for name, value in values.items()
    }


def accuracy(examples: Sequence[Encoded], right: npt.ArrayLike) -> TaskRecord:
    """How many prompts were asked and the share answered right; the same of foils.

    ``right`` is (2, example).
    """
    right = np.asarray(right, bool)
    foiled = has_foil(examples)
    foils = int(foiled.sum())
    return TaskRecord(
        asked=len(examples),
        accuracy=float(right[0].mean()),
        foils=foils or None,
        beats_foil=float(right[1][foiled].mean()) if foils else None,
    )

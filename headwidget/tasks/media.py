"""Images and sounds beside a prompt, checked when a task is made.

Nothing is opened or decoded here: a model's processor does that when the task is encoded.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

Kind = Literal["image", "audio"]
LOUDEST = 2.0
"""Samples lie between -1 and 1, but for what resampling adds."""


@dataclass(frozen=True, eq=False)
class Media:
    """One image or sound. Two are the same only if they are the same object."""

    kind: Kind
    content: Any
    """An image: a path, an image of Pillow, or an array (height, width, 3) of bytes. A sound:
    its samples, an array (time,)."""
    name: str
    """What labels call it: a file's name, or its kind."""
    rate: int | None = None
    """Samples a second, of a sound."""


def beside(
    task: str, count: int, images: Iterable[Any] | None, audio: Iterable[Any] | None
) -> list[tuple[Media, ...]]:
    """The images and sounds of each of ``count`` examples."""
    shown = _one_each(task, count, "images", images)
    heard = _one_each(task, count, "audio", audio)
    media = []
    for i, (pictures, sound) in enumerate(zip(shown, heard)):
        where = f"task {task!r}, example {i}"
        several = pictures if isinstance(pictures, (list, tuple)) else [pictures]
        own = [_image(image, where) for image in several if image is not None]
        if sound is not None:
            own.append(_sound(sound, where))
        media.append(tuple(own))
    return media


def _one_each(task: str, count: int, what: str, values: Iterable[Any] | None) -> Sequence[Any]:
    if values is None:
        return [None] * count
    if isinstance(values, (str, bytes, os.PathLike)) or not isinstance(values, Iterable):
        raise ValueError(
            f"task {task!r}: {what} is a list with an entry for each example (None where one has "
            f"none); got {values!r:.100}."
        )
    values = list(values)
    if len(values) != count:
        raise ValueError(
            f"task {task!r} has {count} examples and {len(values)} entries in {what}; give one "
            "for each example, None where one has none."
        )
    return values


def _image(image: Any, where: str) -> Media:
    if isinstance(image, (str, os.PathLike)):
        if str(image).startswith(("http://", "https://")):
            raise ValueError(f"{where}: headwidget fetches no image; download {image} first.")
        path = Path(image).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"{where}: there is no image file {str(path)!r}.")
        return Media("image", path, path.name)
    shape, dtype = getattr(image, "shape", None), str(getattr(image, "dtype", ""))
    is_array = shape is not None and (len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4)))
    if is_array and not dtype.endswith("uint8"):
        raise ValueError(
            f"{where}: an image's array holds bytes, 0 to 255 (uint8); got {dtype or 'no dtype'}. "
            "A processor would rescale other numbers as if they were bytes."
        )
    if not is_array and not (hasattr(image, "convert") and hasattr(image, "size")):
        got = f"an array {tuple(shape)}" if shape is not None else f"a {type(image).__name__}"
        raise ValueError(
            f"{where}: an image is a path, an image of Pillow, or an array (height, width, 3) of "
            f"bytes; got {got}."
        )
    return Media("image", image, "image")


def _sound(sound: Any, where: str) -> Media:
    """A pair (rate, samples), as scipy reads a file, or a row of a dataset's audio column."""
    if isinstance(sound, Mapping) and {"array", "sampling_rate"} <= set(sound):
        sound = sound["sampling_rate"], sound["array"]
    pair = isinstance(sound, (tuple, list)) and len(sound) == 2
    try:
        rate = operator.index(sound[0]) if pair else 0
        samples = np.asarray(sound[1]) if pair else np.zeros((0, 0))
    except (TypeError, ValueError, RuntimeError):
        rate, samples = 0, np.zeros((0, 0))
    if rate < 1 or samples.ndim != 1:
        raise ValueError(
            f"{where}: a sound is (samples a second, array of samples) or "
            "{'array': …, 'sampling_rate': …}, the array one channel; got "
            f"a {type(sound).__name__}."
        )
    if samples.dtype.kind != "f":
        raise ValueError(
            f"{where}: a sound's samples are floating-point numbers, -1 to 1; got {samples.dtype}."
        )
    if not samples.size or not np.isfinite(samples).all() or np.abs(samples).max() > LOUDEST:
        raise ValueError(
            f"{where}: a sound has samples, and they are numbers of about -1 to 1; got "
            f"{samples.size} of them"
            + (f", the largest {np.abs(samples).max():.4g}." if samples.size else ".")
        )
    return Media("audio", samples, "sound", rate)

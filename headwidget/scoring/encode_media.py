"""From images and sounds to a model's input, by the model's own processor."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headwidget.models.classifiers import classes
from headwidget.tasks import Example, Task
from headwidget.tasks.media import Media

if TYPE_CHECKING:
    from headwidget.models import Model


@dataclass(frozen=True, eq=False)
class MediaInputs:
    """What a processor made of an example's images or sound: keyword arguments of a forward."""

    tensors: dict[str, Tensor]
    """For all media of the example together, along the first dimension."""
    by_token: dict[str, Tensor] = field(default_factory=dict)
    """A number for each token of the prompt, (1, seq); 0 for the tokens that follow."""
    placeholder: int | None = None
    """The token that stands for a piece of an image, as often as there are pieces."""

    def fit(self, other: MediaInputs) -> bool:
        """Can both be stacked?"""
        shapes = [{name: t.shape for name, t in each.tensors.items()} for each in (self, other)]
        return shapes[0] == shapes[1]


def collated(media: Sequence[MediaInputs], length: int, device: torch.device) -> dict[str, Tensor]:
    """Several examples' inputs as one; ``length`` tokens are fed."""
    inputs = {}
    for name in media[0].tensors:
        inputs[name] = torch.cat([each.tensors[name] for each in media]).to(device)
    for name in media[0].by_token:
        rows = [
            torch.nn.functional.pad(each.by_token[name], (0, length - each.by_token[name].shape[1]))
            for each in media
        ]
        inputs[name] = torch.cat(rows).to(device)
    return inputs


def rows_of(inputs: dict[str, Tensor], prompts: int, rows: Tensor) -> dict[str, Tensor]:
    """The inputs of some of ``prompts``, one after the other.

    One prompt's may have any first dimension (patches of all its images), so they repeat whole.
    """
    if prompts == 1:
        return {name: torch.cat([value] * len(rows)) for name, value in inputs.items()}
    return {name: value[rows.to(value.device)] for name, value in inputs.items()}


# ---- language models ----


def check_task(task: Task, model: Model) -> None:
    """Refuse media that a model cannot take, and a classifier's task without."""
    for i, example in enumerate(task.examples):
        where = f"task {task.name!r}, example {i}"
        kinds = {media.kind for media in example.media}
        if model.classifier:
            _check_one(model, example, where)
        elif "audio" in kinds:
            raise ValueError(
                f"{where} has a sound, and headwidget feeds sounds to models that classify them; "
                f"{model.name} ({model.family.name}) answers with tokens."
            )
        elif kinds and model.family.head != "image-text":
            raise ValueError(
                f"{where} has an image, and {model.name} ({model.family.name}) reads text only; "
                "load an image-text model, or leave the images out."
            )
        elif kinds and not hasattr(model.processor, "image_processor"):
            raise ValueError(
                f"{where} has an image, and {model.name} was loaded with a tokenizer, which reads "
                "text only; load it with its processor: hw.load(model, processor)."
                f"{_why_no_processor(model)}"
            )


def _why_no_processor(model: Model) -> str:
    why = model.no_processor
    return f" (Its processor could not be loaded: {why})" if why else ""


def with_images(model: Model, example: Example, where: str) -> tuple[list[int], MediaInputs]:
    """A prompt's tokens, those that stand for its images among them, and the images' inputs."""
    images = [_opened(media, where) for media in example.media]
    try:
        made = model.processor(
            text=example.prompt,
            images=images if len(images) > 1 else images[0],
            return_tensors="pt",
        )
    except Exception as error:  # whatever a processor raises at a prompt that does not fit
        raise ValueError(
            f"{where}: the processor of {model.name} cannot read the prompt with its "
            f"{_counted(len(images))} ({type(error).__name__}: {_first_line(error)}).{_hint(model)}"
        ) from error
    tensors = {name: value for name, value in made.items() if isinstance(value, Tensor)}
    ids = tensors.pop("input_ids", None)
    if ids is None or ids.dim() != 2 or len(ids) != 1:
        raise ValueError(f"{where}: the processor of {model.name} gives no tokens of one prompt.")
    mask = tensors.pop("attention_mask", None)
    if mask is not None and not bool(mask.all()):
        raise ValueError(
            f"{where}: the processor of {model.name} pads the prompt; switch its padding off."
        )
    tokens: list[int] = ids[0].tolist()
    placeholder = _placeholder(model)
    if placeholder is not None and placeholder not in tokens:  # the image would not be read
        raise ValueError(f"{where} has an image and no place for it.{_hint(model)}")
    return tokens, _inputs(model, tensors, ids, placeholder)


def _inputs(
    model: Model, tensors: dict[str, Tensor], ids: Tensor, placeholder: int | None
) -> MediaInputs:
    """What the model's forward takes of what a processor made."""
    takes = inspect.signature(model.module.forward).parameters
    named = {name: _cast(model, value) for name, value in tensors.items() if name in takes}
    by_token = {
        name: value
        for name, value in named.items()
        if value.shape == ids.shape and not value.is_floating_point()
    }
    rest = {name: value for name, value in named.items() if name not in by_token}
    if not rest:
        raise ValueError(
            f"the processor of {model.name} makes {', '.join(tensors) or 'nothing'} of an image, "
            f"which {type(model.module).__name__} does not take; is it this model's processor?"
        )
    return MediaInputs(rest, by_token, placeholder)


def _cast(model: Model, value: Tensor) -> Tensor:
    return value.to(model.dtype) if value.is_floating_point() else value


def _placeholder(model: Model) -> int | None:
    """The token that stands for images, where the configuration names it."""
    names = ("image_token_id", "image_token_index")
    values = (getattr(model.config, name, None) for name in names)
    return next((value for value in values if type(value) is int), None)


def _hint(model: Model) -> str:
    token = getattr(model.processor, "image_token", None)
    return f" Write {token!r} in the prompt where the image stands." if token else ""


def _opened(media: Media, where: str) -> Any:
    """An image of Pillow, in colour."""
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    content = media.content
    if hasattr(content, "convert"):
        return content.convert("RGB")
    if hasattr(content, "shape"):
        return Image.fromarray(np.asarray(content)).convert("RGB")
    try:
        with Image.open(content) as image:
            return image.convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise ValueError(f"{where}: {media.name} cannot be read as an image.") from error


def _counted(images: int) -> str:
    return "image" if images == 1 else f"{images} images"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]


# ---- classifiers ----


def _check_one(model: Model, example: Example, where: str) -> None:
    wanted = "image" if model.family.head == "image-class" else "audio"
    if [media.kind for media in example.media] != [wanted]:
        what = "images=[…]" if wanted == "image" else "audio=[(samples a second, samples), …]"
        raise ValueError(
            f"{where}: {model.name} classifies one {wanted} an example; give the task "
            f"hw.Task(name, [(a name, a class), …], {what})."
        )
    if model.processor is None or not callable(model.processor):
        raise ValueError(
            f"{model.name} was loaded without its image processor or feature extractor; give it: "
            "hw.load(model, processor)."
        )


def class_inputs(model: Model, example: Example, where: str) -> MediaInputs:
    """What a classifier is fed for an example."""
    (media,) = example.media
    if media.kind == "image":
        content: dict[str, Any] = {"images": _opened(media, where)}
    else:
        content = _sound(model, media, where)
    try:
        made = model.processor(**content, return_tensors="pt")
    except Exception as error:
        raise ValueError(
            f"{where}: the processor of {model.name} cannot read {media.name} "
            f"({type(error).__name__}: {_first_line(error)})."
        ) from error
    takes = inspect.signature(model.module.forward).parameters
    tensors = {n: v for n, v in made.items() if isinstance(v, Tensor) and n in takes}
    if model.module.main_input_name not in tensors:
        raise ValueError(
            f"{where}: the processor makes {', '.join(made)} of {media.name}, and {model.name} "
            f"takes {model.module.main_input_name}; is it this model's processor?"
        )
    return MediaInputs({name: _cast(model, value) for name, value in tensors.items()})


def _sound(model: Model, media: Media, where: str) -> dict[str, Any]:
    import numpy as np

    extractor = getattr(model.processor, "feature_extractor", model.processor)
    wanted = getattr(extractor, "sampling_rate", None)
    if wanted is not None and wanted != media.rate:
        raise ValueError(
            f"{where}: the sound has {media.rate} samples a second and {model.name} reads "
            f"{wanted}; resample it."
        )
    name = "audio" if extractor is not model.processor else "raw_speech"
    return {name: np.asarray(media.content, np.float32), "sampling_rate": media.rate}


def class_number(model: Model, name: str, what: str, where: str) -> int:
    """The number of a class by its name."""
    known = classes(model)
    for written in (name, name.strip()):
        if written in known:
            return known[written]
    close = get_close_matches(name, known, n=3) or list(known)[:3]
    raise ValueError(
        f"{where}: the {what} {name!r} is not one of the {len(known)} classes of {model.name}; "
        f"did you mean {' or '.join(map(repr, close))}?"
    )

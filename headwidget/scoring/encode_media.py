"""From images and sounds to a model's input, by the model's own processor."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from headwidget.models.classifiers import classes
from headwidget.scoring.errors import first_line
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


def with_images(
    model: Model, example: Example, after: Sequence[int], where: str
) -> tuple[list[int], MediaInputs]:
    """A prompt's tokens, those that stand for its images among them, and the images' inputs.

    ``after`` are the special tokens that the tokenizer puts behind a text: the answer follows
    the prompt, so they are left out.
    """
    images = [_opened(media, where) for media in example.media]
    _check_count(model, example.prompt, len(images), where)
    made = _processed(
        model,
        f"{where}: the processor of {model.name} cannot read the prompt with its "
        f"{_counted(len(images))}",
        _hint(model),
        text=example.prompt,
        images=images if len(images) > 1 else images[0],
    )
    ids, mask = made.pop("input_ids", None), made.pop("attention_mask", None)
    if ids is None or ids.dim() != 2 or len(ids) != 1:
        raise ValueError(f"{where}: the processor of {model.name} gives no tokens of one prompt.")
    if mask is not None and not bool(mask.all()):
        raise ValueError(
            f"{where}: the processor of {model.name} pads the prompt; switch its padding off."
        )
    tokens: list[int] = ids[0].tolist()
    placeholder = image_placeholder(model)
    if placeholder is not None and placeholder not in tokens:  # the image would not be read
        raise ValueError(f"{where} has an image and no place for it.{_hint(model)}")
    inputs = _inputs(model, made, ids, placeholder)
    behind = len(after) if after and tokens[-len(after) :] == list(after) else 0
    return tokens[: len(tokens) - behind], inputs


def _check_count(model: Model, prompt: str, images: int, where: str) -> None:
    """Refuse another number of places for images than there are images."""
    token = getattr(model.processor, "image_token", None)
    places = prompt.count(token) if token else images
    if places not in (0, images):  # a processor may put the only one itself
        raise ValueError(
            f"{where}: the prompt has {places} places for images ({token!r}) and {images} images; "
            "give one for each place."
        )


def check_no_place(model: Model, tokens: Sequence[int], where: str) -> None:
    """Refuse a prompt without images that has a place for one: it was forgotten, or is text."""
    if model.family.head == "image-text" and image_placeholder(model) in tokens:
        raise ValueError(
            f"{where}: the prompt has a place for an image and there is none; give the task its "
            "images: hw.Task(…, images=[…])."
        )


def _processed(model: Model, cannot: str, hint: str = "", **content: Any) -> dict[str, Tensor]:
    """What a processor makes: tensors, for the arguments that the model's forward takes."""
    try:
        made = dict(model.processor(**content, return_tensors="pt"))
    except Exception as error:  # whatever a processor raises at what does not fit
        raise ValueError(
            f"{cannot} ({type(error).__name__}: {first_line(error)}).{hint}"
        ) from error
    takes = inspect.signature(model.module.forward).parameters
    tensors = {}
    for name, value in made.items():
        if name not in takes or value is None:
            continue
        if not isinstance(value, (Tensor, np.ndarray)):
            raise ValueError(
                f"the processor of {model.name} gives {name} as a {type(value).__name__}, not as "
                "one tensor, so headwidget cannot feed it."
            )
        tensors[name] = _cast(model, torch.as_tensor(value))
    return tensors


def _inputs(
    model: Model, made: dict[str, Tensor], ids: Tensor, placeholder: int | None
) -> MediaInputs:
    """A prompt's images, apart from what there is for each of its tokens."""
    by_token = {n: v for n, v in made.items() if "token" in n and v.shape == ids.shape}
    rest = {name: value for name, value in made.items() if name not in by_token}
    if not any(value.is_floating_point() for value in rest.values()):
        raise ValueError(
            f"the processor of {model.name} makes no numbers of an image that "
            f"{type(model.module).__name__} takes; is it this model's processor?"
        )
    return MediaInputs(rest, by_token, placeholder)


def _cast(model: Model, value: Tensor) -> Tensor:
    return value.to(model.dtype) if value.is_floating_point() else value


def image_placeholder(model: Model) -> int | None:
    """The token that stands for images, where the configuration names it."""
    names = ("image_token_id", "image_token_index")
    values = (getattr(model.config, name, None) for name in names)
    return next((value for value in values if type(value) is int), None)


def _hint(model: Model) -> str:
    token = getattr(model.processor, "image_token", None)
    return f" Write {token!r} in the prompt where the image stands." if token else ""


def _opened(media: Media, where: str) -> Any:
    """An image of Pillow in colour, the right way up."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    content = media.content
    try:
        if hasattr(content, "shape"):
            image = Image.fromarray(np.asarray(content))
        elif hasattr(content, "convert"):
            image = content
        else:
            image = Image.open(content)
        if 0 in image.size:
            raise ValueError(f"{where}: {media.name} has no pixels.")
        if image.mode in ("F", "I") or image.mode.startswith("I;"):
            raise ValueError(
                f"{where}: {media.name} is of Pillow's mode {image.mode!r}, whose numbers are not "
                "bytes; bring them to 0 to 255 first, e.g. convert it to 'RGB' yourself."
            )
        return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise ValueError(f"{where}: {media.name} cannot be read as an image.") from error


def digest(media: Media, where: str) -> str:
    """Six letters that tell an image or a sound from others."""
    if media.kind == "image":
        image = _opened(media, where)
        content = f"{image.size}".encode() + image.tobytes()
    else:
        content = f"{media.rate}".encode() + np.ascontiguousarray(media.content).tobytes()
    return hashlib.sha256(content).hexdigest()[:6]


def _counted(images: int) -> str:
    return "image" if images == 1 else f"{images} images"


# ---- classifiers ----


def _check_one(model: Model, example: Example, where: str) -> None:
    wanted = "image" if model.family.head == "image-class" else "audio"
    if [media.kind for media in example.media] != [wanted]:
        what = "images=[…]" if wanted == "image" else "audio=[(samples a second, samples), …]"
        raise ValueError(
            f"{where}: {model.name} classifies one {wanted} an example; give the task "
            f"hw.Task(name, [(a name, a class), …], {what})."
        )
    if hasattr(model.processor, "convert_ids_to_tokens") or not callable(model.processor):
        raise ValueError(
            f"{model.name} was loaded with a {type(model.processor).__name__} and needs its image "
            "processor or feature extractor: hw.load(model, processor)."
        )


def class_inputs(model: Model, example: Example, where: str) -> MediaInputs:
    """What a classifier is fed for an example."""
    (media,) = example.media
    cannot = f"{where}: the processor of {model.name} cannot read {media.name}"
    if media.kind == "image":
        made = _processed(model, cannot, images=_opened(media, where))
    else:
        made = _processed(model, cannot, **_sound(model, media, where))
    name = model.module.main_input_name
    if name not in made or len(made[name]) != 1:
        raise ValueError(
            f"{where}: the processor does not make {name} of one row of {media.name}, which "
            f"{model.name} takes; is it this model's processor?"
        )
    if media.kind == "audio":
        _check_read_to_its_end(model, media, made[name], where)
    return MediaInputs(made)


def _check_read_to_its_end(model: Model, media: Media, fed: Tensor, where: str) -> None:
    """Refuse a sound whose end a feature extractor cuts off: it would not be heard."""
    samples = np.array(media.content, np.float32)
    end = max(1, len(samples) // 20)
    samples[-end:] = 0.5 - samples[-end:]
    changed = dataclasses.replace(media, content=samples)
    again = _processed(model, where, **_sound(model, changed, where))[model.module.main_input_name]
    if torch.equal(fed, again):
        raise ValueError(
            f"{where}: the sound has {len(samples)} samples, and the processor of {model.name} "
            f"cuts its end off{_longest(model)}; cut it yourself."
        )


def _longest(model: Model) -> str:
    """How many samples a feature extractor reads, where it says."""
    extractor = getattr(model.processor, "feature_extractor", model.processor)
    samples = getattr(extractor, "n_samples", None)
    frames = getattr(extractor, "max_length", None)
    if samples is None and type(frames) is int:  # frames of 10 ms
        samples = frames * extractor.sampling_rate // 100
    return "" if samples is None else f" (it reads about {samples})"


def _sound(model: Model, media: Media, where: str) -> dict[str, Any]:
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
    """The number of a class by its name, or by the number as text."""
    known = classes(model)
    for written in (name, name.strip()):
        numbers = known.get(written, ())
        if len(numbers) > 1:
            raise ValueError(
                f"{where}: the {what} {name!r} is the name of {len(numbers)} classes of "
                f"{model.name}, {' and '.join(map(str, numbers))}; write the number, "
                f"{str(numbers[0])!r}."
            )
        if numbers:
            return numbers[0]
    if name.strip().isdecimal() and int(name) < model.vocabulary:
        return int(name)
    close = get_close_matches(name, known, n=3)
    listed = ", ".join(map(repr, list(known)[:8])) + (", …" if len(known) > 8 else "")
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"they are {listed}."
    raise ValueError(
        f"{where}: the {what} {name!r} is not one of the {len(known)} classes of {model.name}; "
        f"{hint}"
    )

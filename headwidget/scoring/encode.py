"""From a task's text to token ids: the model's input, and where its answer is read.

Plain Python, before any forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headwidget.models.encoder_decoder import decoder_start, source_context
from headwidget.scoring import encode_media
from headwidget.scoring.encode_media import MediaInputs
from headwidget.tasks import Example, Task

if TYPE_CHECKING:
    from headwidget.models import Model


@dataclass(frozen=True)
class Encoded:
    """One example as the model sees it."""

    label: str
    ids: tuple[int, ...]
    """The input: the prompt, then the answer without its last token, which predicts nothing.
    For a masked model: the whole text, the answer masked."""
    at: tuple[int, ...]
    """The position that predicts each answer token."""
    answer: tuple[int, ...]
    parting: int | None = None
    """Index into ``answer`` of the first token where answer and foil differ."""
    foil: int | None = None
    """The foil's token there."""
    source: tuple[int, ...] = ()
    """What the encoder of an encoder-decoder model reads; ``ids`` are then its decoder's."""
    media: MediaInputs | None = None
    """Images or sounds that are fed too; a classifier is fed nothing else, and its ``ids`` only
    count its patches or frames."""

    @property
    def length(self) -> int:
        """How many tokens a forward of it has."""
        return len(self.source) + len(self.ids)


@dataclass(frozen=True)
class EncodedTask:
    """A task's examples as the model sees them."""

    name: str
    category: str | None
    examples: tuple[Encoded, ...]
    before: tuple[str, ...]
    """The special tokens that the tokenizer puts before a prompt."""
    joint_differs: int
    """How many prompts are tokenised differently together with their answer."""
    held_out: tuple[int, ...] = ()
    """Indices of the examples that no method may be fitted on."""

    def only(self, chosen: Sequence[int]) -> EncodedTask:
        """The same task with only the chosen examples."""
        held_out = tuple(new for new, old in enumerate(chosen) if old in self.held_out)
        examples = tuple(self.examples[i] for i in chosen)
        return replace(self, examples=examples, held_out=held_out)


def has_foil(examples: Sequence[Encoded]) -> npt.NDArray[np.bool_]:
    """(example,): which examples have a foil."""
    return np.array([example.foil is not None for example in examples])


def encode(task: Task, model: Model) -> EncodedTask:
    """A task's examples as token ids; an error for whatever cannot be scored."""
    encode_media.check_task(task, model)
    if model.classifier:
        return _encode_classes(task, model)
    if model.encoder_decoder:
        return _encode_sources(task, model)
    tokenizer = model.tokenizer
    prompts = plain_ids(tokenizer, [e.prompt for e in task.examples])
    specials = _specials(tokenizer, task, prompts)
    answers = _behind(model, task.examples, prompts, [e.answer for e in task.examples])
    foils = _behind(model, task.examples, prompts, [e.foil or e.answer for e in task.examples])
    examples = []
    for i, example in enumerate(task.examples):
        where = f"task {task.name!r}, example {i}"
        ids = _Ids(prompts[i], answers[i].ids, foils[i].ids)
        examples.append(_encoded(model, example, ids, specials, where))
    before = specials.before
    names = tuple(tokenizer.convert_ids_to_tokens(before)) if before else ()
    differs = sum(answer.joint_differs for answer in answers)
    return EncodedTask(task.name, task.category, tuple(examples), names, differs, task.held_out)


class _Ids(NamedTuple):
    """An example's tokens, no special ones among them."""

    prompt: list[int]
    answer: list[int]
    foil: list[int]


class Specials(NamedTuple):
    """The special tokens that a tokenizer puts around a text."""

    before: list[int]
    after: list[int]


class _Continuation(NamedTuple):
    """A text's tokens behind its prompt's."""

    ids: list[int]
    joint_differs: bool
    """Would tokenising both together change the prompt's tokens?"""


def _encoded(model: Model, example: Example, ids: _Ids, specials: Specials, where: str) -> Encoded:
    """One example, checked."""
    _check_answer(model, example, ids.answer, ids.foil, where)
    if not ids.prompt and not specials.before:
        raise ValueError(
            f"{where}: the prompt {example.prompt!r} tokenises to nothing; the model needs at "
            "least one token before the answer."
        )
    parting, foil = None, None
    if example.foil is not None:
        parting, foil = _part(example, ids.answer, ids.foil, where)
    text, media = [*specials.before, *ids.prompt], None
    if example.media:
        text, media = encode_media.with_images(model, example, specials.after, where)
    else:
        encode_media.check_no_place(model, text, where)
    count = len(ids.answer)
    if model.encoder:
        after = specials.after
        fed, at = _masked(model, [*text, *after], len(after), count, where)
    else:
        fed = [*text, *ids.answer[:-1]]
        at = range(len(text) - 1, len(text) + count - 1)
    _check_tokens(model, fed, [*ids.answer, foil or 0], where)
    _check_fits(model, len(fed), where)
    label = _label(example, f"{example.prompt}{example.answer}", where)
    return Encoded(label, tuple(fed), tuple(at), tuple(ids.answer), parting, foil, media=media)


def _label(example: Example, text: str, where: str) -> str:
    """What a run is called: two prompts may differ in their images alone."""
    names = [f"{media.name} {encode_media.digest(media, where)}" for media in example.media]
    return f"{text} [{', '.join(names)}]" if names else text


def _check_answer(
    model: Model, example: Example, answer: Sequence[int], foil: Sequence[int], where: str
) -> None:
    if not answer:
        raise ValueError(
            f"{where}: the answer {example.answer!r} tokenises to nothing; write one that the "
            "model can say."
        )
    tokenizer = model.tokenizer
    unknown = getattr(tokenizer, "unk_token_id", None)
    for what, text, ids in (("answer", example.answer, answer), ("foil", example.foil, foil)):
        if text is not None and unknown in ids and tokenizer.unk_token not in text:
            raise ValueError(
                f"{where}: the {what} {text!r} has a piece that the tokenizer does not know "
                f"({tokenizer.unk_token}), so another word would be scored; is it this model's "
                "tokenizer?"
            )


def _check_tokens(model: Model, fed: Sequence[int], said: Sequence[int], where: str) -> None:
    """Refuse tokens that the model cannot read, or cannot say."""
    for ids, count in ((fed, model.readable), (said, model.vocabulary)):
        if (largest := max(ids)) >= count:
            raise ValueError(
                f"{where}: the tokenizer gives token {largest}, but {model.name} has {count}; is "
                "it this model's tokenizer?"
            )


def _check_fits(model: Model, tokens: int, where: str) -> None:
    if model.context is not None and tokens > model.context:
        raise ValueError(
            f"{where}: {tokens} tokens, but {model.name} reads at most {model.context}; "
            "shorten the prompt or the answer."
        )


# ---- classifiers of images and sounds ----


def _encode_classes(task: Task, model: Model) -> EncodedTask:
    """Each example's image or sound, and its class as the one token of the answer."""
    examples = []
    for i, example in enumerate(task.examples):
        where = f"task {task.name!r}, example {i}"
        answer = encode_media.class_number(model, example.answer, "answer", where)
        parting, foil = None, None
        if example.foil is not None:
            parting, foil = 0, encode_media.class_number(model, example.foil, "foil", where)
        if foil == answer:
            raise ValueError(f"{where}: answer and foil are the same class; choose another foil.")
        media = encode_media.class_inputs(model, example, where)
        label = _label(example, f"{example.prompt} → {example.answer}", where)
        ids = (0,) * model.positions
        examples.append(Encoded(label, ids, (0,), (answer,), parting, foil, media=media))
    return EncodedTask(task.name, task.category, tuple(examples), (), 0, task.held_out)


# ---- encoder-decoder models ----


def _encode_sources(task: Task, model: Model) -> EncodedTask:
    """Prompts as what the encoder reads, with all special tokens; answers as the decoder's.

    Special tokens that an answer begins with (T5's ``<extra_id_0>``, a language's code) are
    fed to the decoder and not scored.
    """
    tokenizer, start = model.tokenizer, decoder_start(model)
    sources = [list(ids) for ids in tokenizer([e.prompt for e in task.examples])["input_ids"]]
    answers = _said(tokenizer, [e.answer for e in task.examples])
    foils = _said(tokenizer, [e.foil or e.answer for e in task.examples])
    examples = []
    for i, example in enumerate(task.examples):
        where = f"task {task.name!r}, example {i}"
        (begin, answer), (foil_begin, foil_ids) = answers[i], foils[i]
        _check_answer(model, example, answer, foil_ids, where)
        if not sources[i]:
            raise ValueError(f"{where}: the prompt {example.prompt!r} tokenises to nothing.")
        if begin != foil_begin:
            raise ValueError(
                f"{where}: answer {example.answer!r} and foil {example.foil!r} begin with "
                "different special tokens, which are fed and not scored; begin both alike."
            )
        parting, foil = None, None
        if example.foil is not None:
            parting, foil = _part(example, answer, foil_ids, where)
        if len(start) > 1 and begin[:1] == start[-1:]:
            begin = begin[1:]  # a forced token that the answer is written with
        fed = [*start, *begin, *answer[:-1]]
        first = len(start) + len(begin) - 1
        _check_tokens(model, [*sources[i], *fed], [*answer, foil or 0], where)
        _check_fits(model, len(fed), where)
        longest = source_context(model.config)
        if longest is not None and len(sources[i]) > longest:
            raise ValueError(
                f"{where}: {len(sources[i])} tokens, but the encoder of {model.name} reads at most "
                f"{longest}; shorten the prompt."
            )
        at, label = range(first, first + len(answer)), f"{example.prompt} → {example.answer}"
        source = tuple(sources[i])
        examples.append(Encoded(label, tuple(fed), tuple(at), tuple(answer), parting, foil, source))
    return EncodedTask(task.name, task.category, tuple(examples), (), 0, task.held_out)


def _said(tokenizer: Any, texts: list[str]) -> list[tuple[list[int], list[int]]]:
    """Each text as a decoder says it: the special tokens that it begins with, and the rest."""
    special = set(getattr(tokenizer, "all_special_ids", ())) - {tokenizer.unk_token_id}
    said = []
    for ids in tokenizer(text_target=texts, add_special_tokens=False)["input_ids"]:
        begin = next((i for i, token in enumerate(ids) if token not in special), len(ids))
        said.append((list(ids[:begin]), list(ids[begin:])))
    return said


# ---- from text to tokens ----


def plain_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Each text's tokens, no special ones among them.

    All texts go in one call, which a fast tokenizer spreads over the cores.
    """
    return [list(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]


def prompt_ids(tokenizer: Any, text: str) -> list[int]:
    """A prompt's tokens for a model that goes on from it.

    The special tokens that come before a text are there, those that end one are not.
    """
    (plain,) = plain_ids(tokenizer, [text])
    specials = specials_around(tokenizer, text, plain) if plain else None
    return [*specials.before, *plain] if specials else list(tokenizer(text)["input_ids"])


def _specials(tokenizer: Any, task: Task, prompts: list[list[int]]) -> Specials:
    """The tokenizer's special tokens, seen on the first prompt that has tokens of its own."""
    own = [i for i, prompt in enumerate(prompts) if prompt]
    if not own:
        return Specials([], [])  # the caller says which prompt is at fault
    # a prompt that begins or ends with a special token itself does not show which are added
    special = set(getattr(tokenizer, "all_special_ids", ()))
    plain = [i for i in own if not {prompts[i][0], prompts[i][-1]} & special]
    first = (plain or own)[0]
    specials = specials_around(tokenizer, task.examples[first].prompt, prompts[first])
    if specials is None:
        raise ValueError(
            f"task {task.name!r}, example {first}: the tokenizer tokenises the prompt differently "
            "once it adds its special tokens."
        )
    return specials


def specials_around(tokenizer: Any, text: str, plain: list[int]) -> Specials | None:
    """The special tokens around a text's own; None where the text's own change."""
    full = list(tokenizer(text)["input_ids"])
    for start in range(len(full) - len(plain) + 1):
        if full[start : start + len(plain)] == plain:
            return Specials(full[:start], full[start + len(plain) :])
    return None


def _behind(
    model: Model, examples: Sequence[Example], prompts: list[list[int]], texts: list[str]
) -> list[_Continuation]:
    """Each text's tokens behind its prompt's.

    They are taken from both tokenised together, where that leaves the prompt's tokens as
    they are: some tokenizers put a space of their own before a text that stands alone.
    """
    alone = plain_ids(model.tokenizer, texts)
    if model.encoder:
        return [_Continuation(ids, False) for ids in alone]
    joint = plain_ids(model.tokenizer, [e.prompt + text for e, text in zip(examples, texts)])
    continuations = []
    for prompt, text_alone, both in zip(prompts, alone, joint):
        follows = both[: len(prompt)] == prompt and len(both) > len(prompt)
        ids = both[len(prompt) :] if follows else text_alone
        continuations.append(_Continuation(ids, not follows and bool(text_alone)))
    return continuations


def _part(
    example: Example, answer: Sequence[int], foil: Sequence[int], where: str
) -> tuple[int, int]:
    """Where answer and foil part: the first token that differs, and the foil's token there."""
    for i, (right, wrong) in enumerate(zip(answer, foil)):
        if right != wrong:
            return i, wrong
    raise ValueError(
        f"{where}: answer {example.answer!r} and foil {example.foil!r} begin with the same tokens "
        "and never part; choose a foil that is not the answer's beginning, nor the answer its."
    )


def _masked(
    model: Model, text: list[int], after: int, count: int, where: str
) -> tuple[list[int], range]:
    """The text with ``count`` masks for the answer, and their positions.

    They stand where the prompt has the tokenizer's mask token, else at its end, before the
    ``after`` special tokens that end the text.
    """
    mask = model.tokenizer.mask_token_id
    if mask is None:
        raise ValueError(
            f"{model.name} predicts masked tokens, but its tokenizer has no mask token; load the "
            "tokenizer that belongs to it."
        )
    masks = [i for i, token in enumerate(text) if token == mask]
    if len(masks) > 1:
        raise ValueError(
            f"{where}: the prompt has {len(masks)} mask tokens; use one, which stands for the "
            "whole answer."
        )
    start = masks[0] if masks else len(text) - after
    ids = [*text[:start], *[mask] * count, *text[start + len(masks) :]]
    return ids, range(start, start + count)

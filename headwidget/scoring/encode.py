"""From a task's text to token ids: what the model is fed, and where its answer is read. Plain Python, before any forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwidget.tasks import Example, Task

if TYPE_CHECKING:
    from headwidget.models import Model


@dataclass(frozen=True)
class Encoded:
    """One example as the model sees it."""

    label: str
    ids: tuple[int, ...]
    """The input: prompt, then the answer but for its last token, which is never fed (masked models: the whole text, the answer masked)."""
    at: tuple[int, ...]
    """The position that predicts each answer token."""
    answer: tuple[int, ...]
    parting: int | None = None
    """Index into ``answer`` of the first token where answer and foil differ."""
    foil: int | None = None
    """The foil's token there."""


@dataclass(frozen=True)
class EncodedTask:
    """A task's examples as the model sees them, and what is worth knowing about how they became so."""

    name: str
    category: str | None
    examples: tuple[Encoded, ...]
    before: tuple[str, ...]
    """The special tokens that the tokenizer puts before a prompt."""
    joint_differs: int
    """How many prompts would be tokenised differently together with their answer."""
    held_out: tuple[int, ...] = ()
    """Indices of the examples that nothing is fitted on."""


def encode(task: Task, model: Model) -> EncodedTask:
    """A task's examples as token ids; a sentence for whatever cannot be scored."""
    tokenizer = model.tokenizer
    examples, differs = [], 0
    prompts = _plain(tokenizer, [e.prompt for e in task.examples])
    before, after = _specials(tokenizer, task, prompts)
    answers = _behind(model, task.examples, prompts, [e.answer for e in task.examples])
    foils = _behind(model, task.examples, prompts, [e.foil or e.answer for e in task.examples])
    for i, (example, prompt, (answer, differ), (foil_ids, _)) in enumerate(
        zip(task.examples, prompts, answers, foils)
    ):
        where = f"task {task.name!r}, example {i}"
        differs += differ
        if not answer:
            raise ValueError(
                f"{where}: the answer {example.answer!r} tokenises to nothing; write one that the model can say."
            )
        if not prompt and not before:
            raise ValueError(
                f"{where}: the prompt {example.prompt!r} tokenises to nothing; the model needs at least one token before the answer."
            )
        parting, foil = (
            (None, None) if example.foil is None else _part(example, answer, foil_ids, where)
        )
        if model.encoder:
            ids, at = _masked(model, [*before, *prompt, *after], len(after), len(answer), where)
        else:
            text = [*before, *prompt]
            ids, at = [*text, *answer[:-1]], range(len(text) - 1, len(text) + len(answer) - 1)
        if (largest := max(*ids, *answer, foil or 0)) >= model.vocabulary:
            raise ValueError(
                f"{where}: the tokenizer gives token {largest}, but {model.name} has {model.vocabulary}; is it this model's tokenizer?"
            )
        if model.context is not None and len(ids) > model.context:
            raise ValueError(
                f"{where}: {len(ids)} tokens, but {model.name} reads at most {model.context}; shorten the prompt."
            )
        examples.append(
            Encoded(
                f"{example.prompt}{example.answer}",
                tuple(ids),
                tuple(at),
                tuple(answer),
                parting,
                foil,
            )
        )
    specials = tuple(tokenizer.convert_ids_to_tokens(before)) if before else ()
    return EncodedTask(task.name, task.category, tuple(examples), specials, differs, task.held_out)


def _plain(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Each text's tokens, no special ones among them; all texts in one call, which a fast tokenizer spreads over the cores."""
    return [list(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]


def prompt_ids(tokenizer: Any, text: str) -> list[int]:
    """A prompt's tokens for a model that goes on from it: the special tokens that come before a text are there, those that end one are not."""
    (plain,) = _plain(tokenizer, [text])
    found = _around(tokenizer, text, plain) if plain else None
    return [*found[0], *plain] if found else list(tokenizer(text)["input_ids"])


def _specials(tokenizer: Any, task: Task, prompts: list[list[int]]) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text, seen on the first prompt that has tokens of its own."""
    first = next((i for i, prompt in enumerate(prompts) if prompt), None)
    if first is None:
        return [], []  # the caller says which prompt is at fault
    found = _around(tokenizer, task.examples[first].prompt, prompts[first])
    if found is None:
        raise ValueError(
            f"task {task.name!r}, example {first}: the tokenizer tokenises the prompt differently once it adds its special tokens."
        )
    return found


def _around(tokenizer: Any, text: str, plain: list[int]) -> tuple[list[int], list[int]] | None:
    """The special tokens before and after a text's own; None where those change."""
    full = list(tokenizer(text)["input_ids"])
    for start in range(len(full) - len(plain) + 1):
        if full[start : start + len(plain)] == plain:
            return full[:start], full[start + len(plain) :]
    return None


def _behind(
    model: Model, examples: Sequence[Example], prompts: list[list[int]], texts: list[str]
) -> list[tuple[list[int], bool]]:
    """Each text's tokens behind its prompt's, and whether tokenising both together would change the prompt's own.

    Where it would not, the text's are what follows them there: some tokenizers put a space of their own before a text that stands alone.
    """
    alone = _plain(model.tokenizer, texts)
    if model.encoder:
        return [(ids, False) for ids in alone]
    joint = _plain(model.tokenizer, [e.prompt + text for e, text in zip(examples, texts)])
    found = []
    for prompt, own, both in zip(prompts, alone, joint):
        follows = both[: len(prompt)] == prompt and len(both) > len(prompt)
        found.append((both[len(prompt) :], False) if follows else (own, bool(own)))
    return found


def _part(
    example: Example, answer: Sequence[int], foil: Sequence[int], where: str
) -> tuple[int, int]:
    """Where answer and foil part: the first token that differs, and the foil's token there."""
    for i, (right, wrong) in enumerate(zip(answer, foil)):
        if right != wrong:
            return i, wrong
    raise ValueError(
        f"{where}: answer {example.answer!r} and foil {example.foil!r} begin with the same tokens and never part; choose a foil that is not the answer's "
        "beginning, nor the answer its."
    )


def _masked(
    model: Model, text: list[int], after: int, count: int, where: str
) -> tuple[list[int], range]:
    """Masks for the answer: where the prompt has the tokenizer's mask token, else at its end."""
    mask = model.tokenizer.mask_token_id
    if mask is None:
        raise ValueError(
            f"{model.name} predicts masked tokens, but its tokenizer has no mask token; load the tokenizer that belongs to it."
        )
    held = [i for i, token in enumerate(text) if token == mask]
    if len(held) > 1:
        raise ValueError(
            f"{where}: the prompt has {len(held)} mask tokens; use one, which stands for the whole answer."
        )
    start = held[0] if held else len(text) - after
    return [*text[:start], *[mask] * count, *text[start + len(held) :]], range(start, start + count)

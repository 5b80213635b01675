"""Checks of a live model before it is scored: does it answer the same way twice, and alone?

A few short forwards, done again only where the model has changed since: other modules, other
hooks, another precision. docs/trust.md lists every check and what it costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwidget.models import Model, foreign, hooks
from headwidget.models.caches import PrefixCache, kept_in
from headwidget.scoring.batch import can_share, collate, forward, log_probability
from headwidget.scoring.encode import Encoded
from headwidget.scoring.memory import out_of_memory

SAME = {8: 1e-9, 4: 1e-4, 2: 5e-2}
"""By the bytes of a number of the precision that is computed in, see :func:`allowed`."""
_BY_BATCH = ("DynamicQuantizedLinear", "Linear8bitLt")
"""Layers that scale or split their input by all that is in the batch."""


def check(model: Model, examples: Sequence[Encoded]) -> None:
    """Find out whether ``examples`` can be scored, and whether several at a time.

    Raises where the model answers the same prompt in two ways. Where its answer depends on
    the prompts beside it, ``model.batch_dependent`` is set: it then runs prompts one by one.
    """
    by_length = sorted(examples, key=_padded_length)
    shortest, longest = by_length[0], by_length[-1]
    shown = next((example for example in examples if example.media is not None), None)
    state, lengths = _state(model), range(_padded_length(shortest), _padded_length(longest) + 1)
    if state == model.checked and not model.hooked and shown is None:
        seen = model.checked_lengths  # what depends on length shows at both ends
        if lengths[0] in seen and lengths[-1] in seen:
            return
        lengths = range(min(lengths[0], seen[0]), max(lengths[-1], seen[-1]) + 1)
    else:
        model.prefix_dependent = False
        model.batch_dependent = any(_splits_by_batch(part) for part in model.module.modules())
    with hooks.scoring(model):
        alone, again = _twice(model, shortest)
        answers = [(alone, again)]
        if shown is not None and shown is not shortest:  # images go another way than text
            answers.append(_twice(model, shown))
        beside, whole = 0.0, math.nan
        for first, last in [] if model.one_by_one else _pairs(by_length, model):
            by_itself = alone if first is shortest else _log_p(model, [first])[0]
            together, whole_last = _beside(model, first, last) or (by_itself, math.nan)
            # padding that a model attends from, and nothing else, may become NaN and spread
            spoilt = math.isnan(together) and not math.isnan(by_itself)
            beside = max(beside, math.inf if spoilt else _apart(by_itself, together))
            whole = whole_last if last is longest else whole
        if model.can_share_prefix and not model.switches_rope(len(longest.ids)):
            goes_on = _goes_on(model, longest, whole)
            model.prefix_dependent = model.prefix_dependent or not goes_on
    first_answer, second_answer = max(answers, key=lambda pair: _apart(*pair))
    if _apart(first_answer, second_answer) > allowed(model) / 10:
        raise RuntimeError(
            f"{model.name} gives two different answers to the same prompt (log p "
            f"{first_answer:.4g} and {second_answer:.4g}): something in it is random, and so would "
            "its scores be. Is there dropout that evaluation mode does not switch off, or a hook "
            "that adds noise?"
            f"{_hooks_named(model)}"
        )
    model.batch_dependent = model.batch_dependent or beside > allowed(model)
    # prompts of one length have no padding, so others must be tried again; so must images
    if _padded_length(shortest) < _padded_length(longest) and shown is None:
        model.checked, model.checked_lengths = state, lengths


def _padded_length(example: Encoded) -> int:
    """How long what gets padded is: a decoder behind an encoder never sees its own padding."""
    return len(example.source) or len(example.ids)


def _pairs(by_length: Sequence[Encoded], model: Model) -> list[tuple[Encoded, Encoded]]:
    """The shortest and the longest of the examples that may run in one batch.

    One pair for prompts of text; one for every size of image or sound that is stacked.
    """
    kinds: list[list[Encoded]] = []
    for example in by_length:
        if example.media is not None and not model.classifier:
            continue  # it runs alone
        kind = next((kind for kind in kinds if can_share(kind[0], example, model)), None)
        if kind is None:
            kinds.append([example])
        else:
            kind.append(example)
    return [(kind[0], kind[-1]) for kind in kinds if len(kind) > 1]


def precision(model: Model) -> torch.dtype:
    """The dtype that the model computes in: its weights', or that of the caller's autocast."""
    kind = model.device.type
    if torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return model.dtype


def allowed(model: Model) -> float:
    """How far two log p(answer) of one prompt may be apart by rounding, relative to their size."""
    return SAME[min(8, precision(model).itemsize)]


def _log_p(model: Model, examples: Sequence[Encoded]) -> list[float]:
    batch = collate(range(len(examples)), examples, model)
    log_p: list[float] = log_probability(forward(model, batch), batch).tolist()
    return log_p


def _twice(model: Model, example: Encoded) -> tuple[float, float]:
    """log p(answer) of an example by itself, and once more."""
    return _log_p(model, [example])[0], _log_p(model, [example])[0]


def _beside(model: Model, example: Encoded, other: Encoded) -> tuple[float, float] | None:
    """log p(answer) of two examples in a batch; None where memory does not hold both.

    Batches are then halved until they hold one.
    """
    try:
        first, second = _log_p(model, [example, other])
        return first, second
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        return None


def _goes_on(model: Model, example: Encoded, whole: float) -> bool:
    """Does a prompt that goes on from its prefix's keys and values give what it gives whole?

    ``whole`` is its log p(answer) in one piece; NaN where that is not known yet.
    """
    prefix = example.at[0]
    if not prefix or example.media is not None:  # prompts with images share no prefix
        return True
    batch, past = collate([0], [example], model), PrefixCache()
    if math.isnan(whole):
        whole = float(log_probability(forward(model, batch), batch))
    start = {"input_ids": batch.ids[:, :prefix], **kept_in(past)}
    rest = {"input_ids": batch.ids[:, prefix:], **kept_in(past)}
    try:
        hooks.logits_at(model, start, torch.zeros_like(batch.at[:, :1]))
        split = log_probability(hooks.logits_at(model, rest, batch.at - prefix), batch)
    except Exception as error:  # whatever a model's own code raises at a cache not its own
        if out_of_memory(error):
            raise
        return False
    return _apart(whole, float(split)) <= allowed(model)


def _apart(one: float, other: float) -> float:
    """How far two log p are apart, relative to their size.

    0 where one is not a number, of which the method itself tells.
    """
    difference = abs(one - other) / (1 + abs(one))
    return 0.0 if math.isnan(difference) else difference


def _splits_by_batch(module: nn.Module) -> bool:
    dynamic = "quantized.dynamic" in type(module).__module__
    return dynamic or type(module).__name__ in _BY_BATCH


def _state(model: Model) -> int:
    """A number that changes with the model's modules, its hooks and the precision."""
    parts = list(model.module.modules())
    kinds = tuple((id(part), type(part), type(part).forward) for part in parts)
    return hash((kinds, model.hooked, precision(model), model.device))


def _hooks_named(model: Model) -> str:
    names = foreign.hooked_modules(model.module)
    return f" It carries hooks on {', '.join(names[:3])}." if names else ""


def weight_versions(model: Model) -> int:
    """A number that grows whenever a weight is changed in place, as training does."""
    parameters: list[Tensor] = list(model.module.parameters())
    return sum(p._version for p in parameters if not p.is_inference())

"""Slopes of log p(answer) in the heads' gates, and a check that they are the true ones.

Autograd is silent where a gradient stops on its way: a quantised layer without a backward, a
part under ``no_grad``, a ``detach``. So some prompts run again with all gates moved a little
in a random direction; the change of log p must be the one that the slopes foretell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from headwidget.models import Model, foreign, hooks
from headwidget.models.altering import Altered
from headwidget.scoring.batch import Batch, collate, forward, log_probability, plan, rows_of
from headwidget.scoring.encode import Encoded
from headwidget.scoring.errors import first_line, is_ours
from headwidget.scoring.memory import out_of_memory
from headwidget.scoring.trust import precision

DIRECTIONS = 4
"""How many prompts are checked a task, each in a direction of its own."""
FEWER = 2
"""As many for a method that computes slopes for the check alone."""
MORE_DIRECTIONS = 16
"""As many in 16 bits with hooks of the user's: rounding is averaged out."""
_GRADIENT_WORDS = ("grad", "derivative", "backward", "leaf variable", "inference", "inplace")
"""What torch's errors about gradients speak of."""
MOST_CASTS = 4
"""How many reshapes and casts are looked through behind an operation."""


class Steps(NamedTuple):
    """How far gates are moved, and what may then be put down to rounding."""

    sizes: tuple[float, float]
    """Large enough to be seen above rounding. The smaller one is tried where the other is off:
    a step may cross a kink, such as a router's choice."""
    allowed: float
    """How far the change of log p may be off, relative to the slopes' length."""
    roundings: float
    """How many units of rounding log p itself may be off."""
    hooked: float
    """What is allowed where hooks of the user's may cut the gradient in part."""


STEPS = {
    torch.float64: Steps((1e-3, 1e-4), 0.01, 2, 0.01),
    torch.float32: Steps((1e-2, 1e-3), 0.02, 2, 0.02),
    torch.float16: Steps((3e-2, 1e-2), 0.3, 0.25, 0.15),
    torch.bfloat16: Steps((1e-1, 3e-2), 0.8, 0.25, 0.3),
}
"""By the precision that is computed in. In 16 bits, rounding and routers' choices alone come
close to what is allowed; ``slopes_off`` in the record says how close."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A call of a module whose output has no gradient although its input has one."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any


@dataclass(frozen=True, eq=False)
class Slopes:
    """What one forward and one backward give."""

    values: Tensor
    """(batch, layer, head): d log p(answer) / d gate, at gates of 1."""
    logits: Tensor
    """Where the answer is predicted, (batch, k, vocabulary)."""
    cuts: list[Cut] = field(default_factory=list)
    """Where the gradient may stop."""


def slopes(model: Model, batch: Batch, *, find_cuts: bool = False) -> Slopes:
    """Every prompt's slopes; call it inside ``hooks.differentiating``."""
    gates = torch.ones(
        len(batch.runs), *model.shape, dtype=torch.float32, device=model.device, requires_grad=True
    )
    cuts: list[Cut] = []
    watches = _watches(model, cuts) if find_cuts else []
    try:
        with hooks.together(hooks.gate(model, gates), *watches):
            logits = forward(model, batch)
            log_p = log_probability(logits, batch).sum()
            if not log_p.requires_grad:
                raise RuntimeError(_at_a_cut(model, _true_cut(model, list(cuts))))
            # gates stay on: a checkpointed block runs again here
            (values,) = torch.autograd.grad(log_p, gates, materialize_grads=True)
    except RuntimeError as error:
        if is_ours(error) or out_of_memory(error) or not _is_about_gradients(error):
            raise
        raise RuntimeError(_in_our_words(model, error)) from error
    return Slopes(values, logits.detach(), cuts)


def check(
    model: Model, batch: Batch, measured: Slopes, seed: int, directions: int = DIRECTIONS
) -> float | None:
    """Raise where the slopes are not those of log p, and say where they stop.

    How far they are off, relative to their length; None where log p is not a number.
    """
    cut, few_bits = _true_cut(model, measured.cuts), precision(model).itemsize < 4
    if cut is not None and few_bits:  # rounding would hide it from the steps below
        raise RuntimeError(_at_a_cut(model, cut))
    if few_bits and (name := foreign.gradient_hook(model.module)):
        raise RuntimeError(
            f"{name} carries a hook on gradients, and in {precision(model)} rounding hides whether "
            "it changes them; remove the hook, load the model in float32, or use "
            "method='ablation', which needs no gradient."
        )
    steps = STEPS[precision(model)]
    trial = _Trial(model, batch, measured.values, seed, directions)
    off = trial.off(steps.sizes[0])
    if off > trial.allowed:
        off = min(off, trial.off(steps.sizes[1]))
    if math.isnan(off):  # the model gives no number, of which the engine tells
        return None
    if off <= trial.allowed:
        return off  # a cut module may only choose, as an indexer of keys does
    if cut is not None:
        raise RuntimeError(_at_a_cut(model, cut))
    raise RuntimeError(
        f"the slopes of {model.name} are not those of its answers: with all gates moved a little, "
        f"log p changes by an amount that is {off:.0%} off what they foretell. "
        f"{trial.where()} Use method='ablation', which needs no gradient."
    )


def check_task(model: Model, examples: Sequence[Encoded], seed: int) -> float | None:
    """:func:`check` on a few of a task's prompts, for a method that needs slopes elsewhere."""
    largest: float | None = None
    for number, runs in enumerate(plan(examples, model, FEWER)):
        if not is_checked(model, number):
            break
        with hooks.differentiating(model):
            batch = collate(runs, [examples[i] for i in runs], model)
            off = check(model, batch, slopes(model, batch, find_cuts=number == 0), seed, FEWER)
        largest = max((value for value in (largest, off) if value is not None), default=None)
    return largest


def is_checked(model: Model, number: int) -> bool:
    """Are the slopes of a task's batch checked? Of the first, or first ones if they hold one."""
    return number < (DIRECTIONS if model.one_by_one else 1)


def directions(model: Model, number: int, is_part: bool, checked: int) -> int:
    """In how many directions a task's batch is checked, after ``checked`` were.

    Where the first batch runs in parts, so does its check.
    """
    if model.one_by_one:
        return DIRECTIONS if is_checked(model, number) else 0
    left = max(0, DIRECTIONS - checked)
    return min(FEWER, left) if is_part else left


def as_record(off: float | None) -> dict[str, float]:
    """What a check gave, for a task's record."""
    return {} if off is None else {"slopes_off": round(off, 6)}


class _Trial:
    """Some prompts with all gates moved in random directions."""

    def __init__(
        self, model: Model, batch: Batch, values: Tensor, seed: int, directions: int
    ) -> None:
        self.model, self.steps = model, STEPS[precision(model)]
        self.unit = self.steps.roundings * torch.finfo(precision(model)).eps
        hooked = bool(model.hooked)
        self.allowed = self.steps.hooked if hooked else self.steps.allowed
        few_bits = precision(model).itemsize < 4
        count = MORE_DIRECTIONS if hooked and few_bits else directions
        chosen = torch.arange(count, device=values.device) % len(batch.runs)
        # never more at once than the batch holds, which memory has room for
        self.groups = list(torch.split(chosen, min(count, len(batch.runs))))
        self.batch, self.values = batch, values
        signs = torch.randint(
            2, (count, *model.shape), generator=torch.Generator().manual_seed(seed)
        )
        self.directions = (2.0 * signs - 1).to(values.device)  # (direction, layer, head)

    def off(self, step: float, row: int | None = None) -> float:
        """How far log p changes otherwise than foretold, relative to the slopes' length.

        With ``row``, the gates of that layer alone are moved.
        """
        directions = self.directions
        if row is not None:
            directions = torch.zeros_like(directions)
            directions[:, row] = self.directions[:, row]
        errors, sizes, start = [], [], 0
        for rows in self.groups:
            batch = rows_of(self.batch, rows)
            move = step * directions[start : start + len(rows)]
            start += len(rows)
            with hooks.scoring(self.model):
                (up, logits), (down, _) = (self._log_p(batch, 1 + s * move) for s in (1, -1))
            change = (up - down) / (2 * step)  # (direction,)
            values = self.values[rows] if row is None else self.values[rows, row : row + 1]
            foretold = (self.values[rows] * move).sum((1, 2)) / step
            length = values.square().sum((1, 2)).sqrt()
            rounding = self.unit * (1 + up.abs() + logits) / step
            errors.append((change - foretold).abs().sub(rounding).clamp(min=0))
            sizes.append(torch.maximum(length, change.abs()))
        error, size = (torch.cat(parts).square().mean().sqrt() for parts in (errors, sizes))
        return float(error / size.clamp(min=1e-30))

    def _log_p(self, batch: Batch, gates: Tensor) -> tuple[Tensor, Tensor]:
        """log p(answer), and the largest logit, which rounding goes by; (batch,) each.

        In 16 bits the largest logit would hide everything, so it does not count there.
        """
        with hooks.gate(self.model, gates):
            logits = forward(self.model, batch)
        log_p = log_probability(logits, batch).to(self.values.device, torch.float32)
        largest = logits.abs().amax((1, 2)).to(log_p)
        return log_p, largest * (precision(self.model).itemsize >= 4)

    def where(self) -> str:
        """Above which layer the slopes go wrong, and whose hooks may be the reason."""
        layers, step = self.model.layers, self.steps.sizes[1]
        wrong = [row for row in range(len(layers)) if self.off(step, row) > self.allowed]
        place = "somewhere"
        if wrong:
            place = f"above the heads of {layers[wrong[-1]].name}"
        named = ", ".join(self.model.hooked[:3])
        hint = f"; there are hooks on {named}" if named else ""
        return f"The gradient is cut or changed {place} (a detached path?{hint})."


# ---- where a gradient stops ----


def _watches(model: Model, cuts: list[Cut]) -> list[Altered]:
    """Watch every module for a gradient that goes in and does not come out."""

    def watch(name: str, module: nn.Module) -> Altered:
        def see(args: Any, kwargs: Any, output: Any) -> None:
            entering, leaving = _float_tensors((args, kwargs)), _float_tensors(output)
            stops = leaving and all(_has_no_slope(tensor) for tensor in leaving)
            if stops and any(tensor.requires_grad for tensor in entering):
                cuts.append(Cut(name, module, args, kwargs, output))

        return hooks.watch(module, see)

    return [watch(name, module) for name, module in model.module.named_modules() if name]


def _has_no_slope(tensor: Tensor) -> bool:
    """Has it no gradient, or one that ends at an operation without a backward?"""
    node: Any = tensor.grad_fn
    for _ in range(MOST_CASTS):
        if node is None:
            break
        if "NotImplemented" in node.name():
            return True
        node = node.next_functions[0][0] if len(node.next_functions) == 1 else None
    return not tensor.requires_grad


def _true_cut(model: Model, cuts: list[Cut]) -> Cut | None:
    """The outermost module at which the gradient stops; None where there is none.

    A module may take no gradient and lose none: rotary positions look at their input's dtype
    alone. So its output must change with its input.
    """
    for cut in sorted(cuts, key=lambda cut: cut.name.count(".")):
        with hooks.scoring(model):
            output = cut.module(*_moved(cut.args), **_moved(cut.kwargs))
            pairs = zip(_float_tensors(output), _float_tensors(cut.output))
            if any(not torch.equal(moved, before) for moved, before in pairs):
                return cut
    return None


def _float_tensors(value: Any) -> list[Tensor]:
    tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
    return [tensor for tensor in tensors if tensor.is_floating_point()]


def _moved(value: Any) -> Any:
    """The same arguments, with each float tensor a little larger at every second number."""

    def move(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not leaf.is_floating_point():
            return leaf
        leaf = leaf.detach().clone(memory_format=torch.contiguous_format)
        leaf.view(-1)[::2] *= 1.25
        return leaf

    return tree_map(move, value)


# ---- words ----


def _at_a_cut(model: Model, cut: Cut | None) -> str:
    place = "before it reaches any head"
    if cut is not None:
        place = f"at {cut.name} ({type(cut.module).__name__})"
    return (
        f"the gradient of {model.name} stops {place}: no slope passes, so scores by slopes would "
        "be wrong. Use method='ablation', which needs no gradient, or load that part in a form "
        "that can be differentiated."
    )


def _is_about_gradients(error: RuntimeError) -> bool:
    text = str(error).lower()
    return any(word in text for word in _GRADIENT_WORDS)


def _in_our_words(model: Model, error: RuntimeError) -> str:
    """An error of torch's, or of a quantised layer's, as a sentence that says what to do."""
    text = str(error)
    if "Inference tensors cannot" in text or "inference tensor" in text:
        return (
            f"the weights of {model.name} were made in torch.inference_mode(), and torch computes "
            "no gradient through them. Load the model outside of it, or use method='ablation', "
            "which needs no gradient."
        )
    if "modified by an inplace operation" in text:
        return (
            f"the weights of {model.name} were changed while it was scored (is it trained in "
            "another thread?). Score it when its training rests."
        )
    return (
        f"{model.name} could not be differentiated: {first_line(error)}. Is a part of it "
        "quantised? Use method='ablation', which needs no gradient."
    )

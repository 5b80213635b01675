"""Definitions of scores by plain loops on a user's own model object.

One prompt at a time, unpadded, without a cache, all logits, in evaluation mode. Nothing here
is shared with headwidget's engine: the output projections are found by ``tests.support.places``,
and z is read and gated by a hook that is registered last, so z is what the projection really
receives, behind the user's own hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from headwidget.scoring.encode import Encoded
from tests.support import places
from tests.support.ingredients import Held
from tests.support.places import attention_layers

Change = Callable[[int, Tensor], Tensor]
"""``change(row, z)`` with z (1, seq, head, dim) gives what stands in its place."""

STEPS = {"double": (2e-2, 1e-2), "single": (2e-2, 1e-2), "half": (0.5, 0.25), "stairs": (0.5, 0.25)}
"""Two steps of the gates for slopes, the larger the coarser the model computes: half a step
of the last digit of log p, divided by the step, must stay below what is told apart."""


@dataclass(eq=False)
class Seen:
    """What one forward showed."""

    logits: Tensor = field(default_factory=lambda: torch.empty(0))  # (seq, vocabulary)
    z: list[Tensor] = field(default_factory=list)  # a layer each, (seq, head, dim)
    written: list[Tensor] = field(default_factory=list)  # a layer each, (seq, width)
    final: Tensor = field(default_factory=lambda: torch.empty(0))  # before the last norm
    unembedded: Tensor = field(default_factory=lambda: torch.empty(0))  # (seq, vocabulary)


class Plain:
    """A user's model, run plainly."""

    def __init__(self, held: Held) -> None:
        self.held, self.heads = held, held.heads
        rows = range(len(attention_layers(held.base, held.places)))
        self.projections = [self.part("projection", row) for row in rows]
        self.shape = (len(self.projections), self.heads)
        self._untouched: dict[Encoded, Seen] = {}
        self._off: dict[tuple[Encoded, int, int], Seen] = {}
        self._gated: dict[tuple[Encoded, bytes], Tensor] = {}
        self._unembedding: Tensor | None = None

    def part(self, name: str, row: int = 0) -> nn.Module:
        held = self.held
        return places.module(held.module, held.base, held.places, name, row)

    # ---- forwards ----

    def run(self, ids: Sequence[int], change: Change | None = None) -> Seen:
        """One forward of one prompt."""
        seen = Seen()
        with ExitStack() as stack:
            stack.enter_context(self.held.as_computed())
            stack.enter_context(evaluating(self.held.module, self.held.base))
            for row, projection in enumerate(self.projections):
                stack.enter_context(self._last_hooks(row, projection, seen, change))
            stack.enter_context(self._watched_tail(seen))
            cache = {} if self.held.encoder else {"use_cache": False}
            out = self.held.module(input_ids=torch.tensor([list(ids)]), **cache)
        seen.logits = out.logits[0]
        return seen

    @contextmanager
    def _last_hooks(
        self, row: int, projection: nn.Module, seen: Seen, change: Change | None
    ) -> Iterator[None]:
        def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            flat = args[0]
            z = flat.reshape(*flat.shape[:-1], self.heads, -1)  # (1, seq, head, dim)
            seen.z.append(z[0].detach().clone())
            if change is None:
                return None
            return (change(row, z).reshape(flat.shape), *args[1:])

        def after(_: nn.Module, args: Any, out: Tensor) -> None:
            seen.written.append(out[0].detach().clone())

        handles = [
            projection.register_forward_pre_hook(before),
            projection.register_forward_hook(after),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def _watched_tail(self, seen: Seen) -> Iterator[None]:
        """See what the final norm takes and the unembedding gives."""

        def final(_: nn.Module, args: tuple[Any, ...]) -> None:
            seen.final = args[0][0].detach().clone()

        def unembedded(_: nn.Module, args: Any, out: Tensor) -> None:
            seen.unembedded = out[0].detach().clone()

        handles = [
            self.part("final_norm").register_forward_pre_hook(final),
            self.part("unembedding").register_forward_hook(unembedded),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @torch.no_grad()
    def untouched(self, example: Encoded) -> Seen:
        """The forward with no head changed; kept, as most definitions need it."""
        if example not in self._untouched:
            self._untouched[example] = self.run(example.ids)
        return self._untouched[example]

    @torch.no_grad()
    def gated(self, example: Encoded, gates: np.ndarray) -> Tensor:
        """Logits (seq, vocabulary) with each head's z multiplied by its gate (layer, head).

        Kept, as is what ``off`` gives: several definitions ask for the same.
        """
        key = example, gates.tobytes()
        if key not in self._gated:
            self._gated[key] = self.run(example.ids, multiplied(torch.tensor(gates))).logits
        return self._gated[key]

    @torch.no_grad()
    def off(self, example: Encoded, row: int, head: int) -> Seen:
        """The forward with one head's z at zero."""
        key = example, row, head
        if key not in self._off:
            self._off[key] = self.run(example.ids, without(row, head))
        return self._off[key]

    def z_width(self) -> int:
        """How many numbers an output projection takes."""
        z = self.run([5, 6]).z[0]
        return int(z[0].numel())

    def log_p(self, example: Encoded, gates: np.ndarray | None = None) -> float:
        logits = self.untouched(example).logits if gates is None else self.gated(example, gates)
        return float(log_probability(logits, example))

    # ---- the definitions ----

    def ablation(self, examples: Sequence[Encoded], replace: str, where: str) -> np.ndarray:
        """log p(answer) less log p(answer) with the head's z replaced, (run, layer, head)."""
        fill = self.means(examples, where) if replace == "mean" else None
        scores = np.zeros((len(examples), *self.shape))
        for run, example in enumerate(examples):
            for row, head in np.ndindex(*self.shape):
                if fill is None and where == "all":
                    logits = self.off(example, row, head).logits
                else:
                    off = without(row, head, fill, example.at if where == "last" else None)
                    with torch.no_grad():
                        logits = self.run(example.ids, off).logits
                scores[run, row, head] = self.log_p(example) - float(
                    log_probability(logits, example)
                )
        return scores

    def means(self, examples: Sequence[Encoded], where: str) -> list[Tensor]:
        """Each head's mean z over all tokens, or those that predict answers; (head, dim) each."""
        fills = []
        for row in range(self.shape[0]):
            rows = []
            for example in examples:
                z = self.untouched(example).z[row]
                rows.append(z[list(example.at)] if where == "last" else z)
            fills.append(torch.cat(rows).double().mean(0))
        return fills

    def gradient(self, examples: Sequence[Encoded]) -> tuple[np.ndarray, np.ndarray]:
        """The slope of log p(answer) in each gate, by central differences, and its uncertainty.

        The uncertainty is how far the slopes of two steps are apart: it grows with curvature
        and with rounding alike. Both are (run, layer, head).
        """
        steps = STEPS[self.held.grain]
        slopes = np.zeros((len(steps), len(examples), *self.shape))
        for number, step in enumerate(steps):
            for run, example in enumerate(examples):
                for row, head in np.ndindex(*self.shape):
                    more, less = np.ones(self.shape), np.ones(self.shape)
                    more[row, head] += step
                    less[row, head] -= step
                    rise = self.log_p(example, more) - self.log_p(example, less)
                    slopes[number, run, row, head] = rise / (2 * step)
        return slopes[-1], np.abs(slopes[0] - slopes[-1])

    def attribution(self, examples: Sequence[Encoded], tail: str) -> np.ndarray:
        """What the head writes, through the norms with their scales held, along the answer.

        What it writes is the change of the projection's output when the head is off: nothing
        in its layer changes but that. ``tail`` says how final norm and unembedding are read: by
        their "weights", or by their "calls", the user's hooks on them among it.
        """
        scores = np.zeros((len(examples), *self.shape))
        for run, example in enumerate(examples):
            seen = self.untouched(example)
            for row, head in np.ndindex(*self.shape):
                off = self.off(example, row, head).written[row]
                for i, at in enumerate(example.at):
                    if example.foil is not None and i != example.parting:
                        continue
                    write = (seen.written[row][at] - off[at]).double()
                    if self.held.places.post_norm:
                        post_norm = FrozenNorm(self.part("post_norm", row))
                        write = post_norm(write, seen.written[row][at].double())
                    normed = FrozenNorm(self.part("final_norm"))(write, seen.final[at].double())
                    logits = self._logits(example, at, normed, tail)
                    against = logits.mean() if example.foil is None else logits[example.foil]
                    scores[run, row, head] += float(logits[example.answer[i]] - against)
        return scores

    @torch.no_grad()
    def _logits(self, example: Encoded, at: int, normed: Tensor, tail: str) -> Tensor:
        """What a part of the final norm's output adds to the logits, (vocabulary,)."""
        if tail == "weights":
            if self._unembedding is None:
                self._unembedding = as_matrix(self.part("unembedding"), len(normed))
            return normed @ self._unembedding
        norm = self.part("final_norm")
        replaced, original = norm.__dict__.get("forward"), norm.forward

        def with_part(x: Tensor) -> Tensor:
            out: Tensor = original(x).clone()
            out[:, at] += normed.to(out.dtype)
            return out

        norm.forward = with_part
        try:
            changed = self.run(example.ids).unembedded[at]
        finally:
            del norm.__dict__["forward"]
            if replaced is not None:
                norm.forward = replaced
        return (changed - self.untouched(example).unembedded[at]).double()

    def features(self, examples: Sequence[Encoded], k: int) -> np.ndarray:
        """z averaged over the ``k`` answer tokens that the model finds least likely.

        (example, layer, head, dim)
        """
        rows = []
        for example in examples:
            seen = self.untouched(example)
            log_p = token_log_probability(seen.logits, example)
            chosen = sorted(range(len(log_p)), key=lambda i: float(log_p[i]))[:k]
            at = [example.at[i] for i in chosen]
            rows.append(torch.stack([z[at].double().mean(0) for z in seen.z]))
        return torch.stack(rows).numpy()

    def answers(self, examples: Sequence[Encoded], gates: np.ndarray) -> dict[str, float]:
        """Accuracy, the share that beats its foil and mean log p under one setting of gates."""
        right, beats, log_ps = [], [], []
        for example in examples:
            all_logits = self.gated(example, gates)
            log_ps.append(float(log_probability(all_logits, example)))
            logits = all_logits[list(example.at)]  # (k, vocabulary)
            right.append(logits.argmax(-1).tolist() == list(example.answer))
            if example.foil is not None and example.parting is not None:
                at = logits[example.parting]
                beats.append(bool(at[example.answer[example.parting]] > at[example.foil]))
        return {
            "accuracy": float(np.mean(right)),
            "beats_foil": float(np.mean(beats)) if beats else float("nan"),
            "log_probability": float(np.mean(log_ps)),
        }


# ---- pieces ----


@contextmanager
def evaluating(*outer: nn.Module) -> Iterator[None]:
    """Every module in evaluation mode, and then as it was.

    bitsandbytes packs the weights of a layer in evaluation mode, so that it gives no gradients
    from then on. It has nothing else that depends on the mode, and stays in training mode.
    """
    modules = {m for part in outer for m in part.modules()}
    wanted = {m: type(m).__name__ == "Linear4bit" for m in modules}
    before = {m: m.training for m in modules if m.training is not wanted[m]}
    for m in before:
        m.training = wanted[m]
    try:
        yield
    finally:
        for m, training in before.items():
            m.training = training


def multiplied(gates: Tensor) -> Change:
    """z times its gate, (layer, head)."""
    return lambda row, z: z * gates[row].to(z.dtype)[:, None]


def without(
    row: int, head: int, fill: Sequence[Tensor] | None = None, at: Sequence[int] | None = None
) -> Change:
    """One head's z replaced by zero or its ``fill``, everywhere or at some positions."""

    def change(layer: int, z: Tensor) -> Tensor:
        if layer != row:
            return z
        z = z.clone()
        positions = list(range(z.shape[1]) if at is None else at)
        z[:, positions, head] = 0 if fill is None else fill[row][head].to(z.dtype)
        return z

    return change


def token_log_probability(logits: Tensor, example: Encoded) -> Tensor:
    """log p of each answer token, from logits (seq, vocabulary)."""
    log_p = logits[list(example.at)].double().log_softmax(-1)
    return log_p[range(len(example.answer)), list(example.answer)]


def log_probability(logits: Tensor, example: Encoded) -> Tensor:
    return token_log_probability(logits, example).sum()


class FrozenNorm:
    """A norm as a linear map: its scale is that of the stream that it really reads."""

    def __init__(self, norm: nn.Module) -> None:
        weight: Any = norm.weight
        gain = weight.detach().double()
        self.gain = 1 + gain if "Gemma" in type(norm).__name__ else gain
        self.centred = isinstance(norm, nn.LayerNorm)
        eps: Any = getattr(norm, "eps", None) or getattr(norm, "variance_epsilon", 0.0)
        self.eps = float(eps)

    def __call__(self, part: Tensor, stream: Tensor) -> Tensor:
        if self.centred:
            part, stream = part - part.mean(), stream - stream.mean()
        size: Tensor = (stream.square().mean() + self.eps).sqrt()
        out: Tensor = part * self.gain / size
        return out


@torch.no_grad()
def as_matrix(linear: nn.Module, width: int) -> Tensor:
    """The matrix (in, out) of a linear map as its module computes it, without hooks."""
    with unhooked(linear):
        rows: Tensor = linear(torch.eye(width, dtype=dtype_of(linear))[None])
    return rows[0].double() - offset(linear, width)


@torch.no_grad()
def offset(linear: nn.Module, width: int) -> Tensor:
    """The bias of a linear map, as its module computes it."""
    with unhooked(linear):
        bias: Tensor = linear(torch.zeros(1, 1, width, dtype=dtype_of(linear)))
    return bias[0, 0].double()


def dtype_of(module: nn.Module) -> torch.dtype:
    """The dtype that a module takes."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


@contextmanager
def unhooked(outer: nn.Module) -> Iterator[None]:
    """Evaluation mode, and no hook or forward of the user's: those are not weights.

    Weight norm's hook computes the weight, accelerate's forward brings it: both stay.
    """
    everywhere = [global_hooks._global_forward_hooks, global_hooks._global_forward_pre_hooks]
    for inner in outer.modules():
        everywhere += [inner._forward_hooks, inner._forward_pre_hooks]
    kept: list[tuple[dict[Any, Any], dict[Any, Any]]]
    kept = [(hooks, dict(hooks)) for hooks in everywhere]
    forwards = [
        (inner, inner.__dict__.pop("forward"))
        for inner in outer.modules()
        if "forward" in inner.__dict__ and not hasattr(inner, "_hf_hook")
    ]
    for hooks, before in kept:
        for key, hook in before.items():
            if "WeightNorm" not in type(hook).__name__:
                del hooks[key]
    try:
        with evaluating(outer):
            yield
    finally:
        for hooks, before in kept:
            hooks.clear()
            hooks.update(before)
        for inner, forward in forwards:
            inner.forward = forward

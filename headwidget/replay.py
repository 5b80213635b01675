"""Replay: a batch's forward, kept so that the model can be run again from any layer on with one head's output changed.

What is shared is paid once. Below the changed layer nothing runs again; a prefix that all prompts share runs as a batch of one,
and its keys and values are expanded over the prompts; the last layer runs its MLP at the answer's positions only.
The model's own modules do all the computing: each block is called again with the arguments the model itself gave it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headwidget import hooks
from headwidget.batch import Batch, collate, correct, log_probability, nothing_kept
from headwidget.models import Layer, Model
from headwidget.tasks.encode import Encoded

SHORTEST_PREFIX = 4
"""A shared prefix of fewer tokens is not worth a run of its own."""


def shared_prefix(examples: Sequence[Encoded]) -> int:
    """How many leading tokens all examples share, leaving to each the position that predicts its answer."""
    first, last = min(e.ids for e in examples), max(e.ids for e in examples)  # these two differ the most
    most = min(e.at[0] for e in examples)
    return next((i for i, (a, b) in enumerate(zip(first, last)) if a != b or i >= most), most)


def belong_together(batch: Sequence[Encoded], example: Encoded) -> bool:
    """Would one more example leave the batch at least half of the prefix that it shares?"""
    return 2 * shared_prefix([*batch, example]) >= shared_prefix(batch) or len(batch) == 1


@dataclass
class _Call:
    """How the model called a block: everything but the hidden states."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tuple_out: bool

    def again(self, block: nn.Module, hidden: Tensor, past: _Past | None) -> Tensor:
        from transformers import Cache

        def own(given: Any) -> Any:
            return past if past is not None and isinstance(given, Cache) else given

        args = [own(a) for a in self.args]
        kwargs = {k: own(v) for k, v in self.kwargs.items()}
        out = block(hidden, *args, **kwargs)
        return out[0] if isinstance(out, tuple) else out  # type: ignore[no-any-return]


@dataclass
class _Past:
    """The shared prefix's keys and values: a layer's first update keeps them, the next is answered with both, nothing kept."""

    held: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def update(self, key: Tensor, value: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if layer not in self.held:
            self.held[layer] = key, value
            return key, value
        k, v = self.held[layer]  # (1, kv head, prefix, dim)
        n = key.shape[0]
        return torch.cat([k.expand(n, -1, -1, -1), key], dim=-2), torch.cat([v.expand(n, -1, -1, -1), value], dim=-2)


class _Enough(Exception):
    """Leaves a block once its attention is known."""


@dataclass
class _Part:
    """One piece of the input, the shared prefix or what follows it, on its way through the layers."""

    calls: list[_Call]
    hidden: Tensor  # into the current layer, (batch, seq, width)
    z: Tensor | None = None  # of the current layer, (batch, seq, heads * dim)
    attended: Any = None  # what its attention gave
    out: Tensor | None = None  # of the current layer

    def see_z(self, args: Any, kwargs: Any, out: Any) -> None:
        self.z = args[0]

    def see_attended(self, args: Any, kwargs: Any, out: Any) -> None:
        self.attended = out


class Replay:
    """Walks a batch layer by layer (:meth:`step`), and at each layer answers :meth:`without` a head."""

    def __init__(self, model: Model, runs: Sequence[int], examples: Sequence[Encoded], *, share: bool = True) -> None:
        self.model = model
        self.batch: Batch = collate(runs, examples, model)
        causal = not model.encoder and len(model.blocks) == len(model.layers)
        prefix = shared_prefix(examples) if share and causal and len(examples) > 1 else 0
        self.prefix = prefix if prefix >= SHORTEST_PREFIX else 0
        """How many leading tokens are run once for all."""
        self.at = self.batch.at - self.prefix
        self.parts: list[_Part] = []
        self.plain = _Past()
        with hooks.scoring(model):
            logits = self._capture()
            self.base = log_probability(logits, self.batch)
            """log p(answer) of the untouched model, (batch,)."""
            self.correct = correct(logits, self.batch)
        self.row = -1

    def _capture(self) -> Tensor:
        """One plain forward that notes how each block is called; logits where the answer is read."""
        if not self.prefix:
            with hooks.unembed_at(self.model, self.at):
                return self._noting(self.batch.inputs(self.model))
        from transformers import DynamicCache

        past = DynamicCache()
        self._noting({"input_ids": self.batch.ids[:1, : self.prefix], "past_key_values": past, "use_cache": True}, logits=False)
        self.plain = _Past({i: (kept.keys, kept.values) for i, kept in enumerate(past.layers)})
        past.batch_repeat_interleave(len(self.batch.ids))
        with hooks.unembed_at(self.model, self.at):
            return self._noting({"input_ids": self.batch.ids[:, self.prefix :], "past_key_values": past, "use_cache": True})

    def _noting(self, inputs: dict[str, Any], *, logits: bool = True) -> Tensor:
        calls: list[_Call] = []
        start: list[Tensor] = []

        def see(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            kwargs = dict(kwargs)
            hidden, rest = (args[0], args[1:]) if args else (kwargs.pop("hidden_states"), ())
            if not calls:
                start.append(hidden)
            calls.append(_Call(tuple(rest), kwargs, isinstance(out, tuple)))

        with ExitStack() as stack:
            for block in self.model.blocks:
                stack.enter_context(hooks.watch(block, see))
            if not logits:  # the prefix predicts nothing: unembed one position
                first = torch.zeros(1, 1, dtype=torch.long, device=self.batch.ids.device)
                stack.enter_context(hooks.unembed_at(self.model, first))
            out: Tensor = self.model.module(**inputs).logits
        if len(calls) != len(self.model.blocks):
            raise RuntimeError(f"{self.model.name} ran {len(calls)} of its {len(self.model.blocks)} layers once each; it cannot be replayed layer by layer.")
        self.parts.append(_Part(calls, start[0]))
        return out

    # ---- the walk ----

    def step(self) -> Layer:
        """On to the next layer with attention: its heads' outputs are known, none is changed."""
        self.row += 1
        layer = self.model.layers[self.row]
        begin = self.model.layers[self.row - 1].index + 1 if self.row else 0
        past = self._past()
        for part in self.parts:
            if part.out is not None:
                part.hidden = part.out
            for k in range(begin, layer.index):  # layers without attention
                part.hidden = part.calls[k].again(self.model.blocks[k], part.hidden, past)
            with hooks.watch(layer.projection, part.see_z), hooks.watch(layer.attention, part.see_attended):
                part.out = part.calls[layer.index].again(layer.block, part.hidden, past)
        return layer

    def without(self, head: int, fill: Tensor | None = None, *, answer_only: bool = False) -> Tensor:
        """log p(answer), (batch,), with one head of the current layer replaced by ``fill`` (dim,), else by zero, at all positions or the answer's."""
        layer = self.model.layers[self.row]
        if answer_only:
            past, parts = self._past(self.plain), self.parts[-1:]
        else:
            past, parts = self._past(), self.parts
        last = layer.index == len(self.model.blocks) - 1
        hidden = [] if last else [self._rerun(part, layer, self._changed(part, layer, head, fill, answer_only), past) for part in parts]
        if last:
            end = parts[-1]
            attended = self._at(self._changed(end, layer, head, fill, answer_only))
            final = self._block_after(end, layer, hooks.take_positions(end.hidden, self.at), attended)
        else:
            final = self._upwards(layer.index + 1, parts, hidden, past)
        return log_probability(self._tail(final), self.batch)

    def finish(self) -> Tensor:
        """How far the walk's own log p(answer) is from the model's, (batch,): zero but for rounding, or the replay cannot be trusted."""
        past, hidden = self._past(), [part.out for part in self.parts]
        for k in range(self.model.layers[-1].index + 1, len(self.model.blocks)):
            hidden = [p.calls[k].again(self.model.blocks[k], h, past) for p, h in zip(self.parts, hidden) if h is not None]
        assert hidden[-1] is not None
        walked = log_probability(self._tail(hooks.take_positions(hidden[-1], self.at)), self.batch)
        return (walked - self.base).abs()

    # ---- pieces ----

    def _past(self, start: _Past | None = None) -> _Past | None:
        """The prefix's keys and values on a walk of their own; None without a prefix."""
        return _Past(dict(start.held) if start else {}) if self.prefix else None

    def _changed(self, part: _Part, layer: Layer, head: int, fill: Tensor | None, answer_only: bool) -> Tensor:
        """What attention gives once the head's output is replaced, (batch, seq, width)."""
        assert part.z is not None
        own = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        lost = part.z[..., own] if fill is None else part.z[..., own] - fill.to(part.z.device, part.z.dtype)
        if answer_only:
            here = torch.zeros(part.z.shape[:2], dtype=lost.dtype, device=lost.device).scatter_(1, self.at.to(lost.device), 1)
            lost = lost * here[..., None]
        before = _first(part.attended)
        if layer.inside:
            return before - layer.writes(lost, head)
        after = before.clone()
        after[..., own] -= lost
        return after

    def _rerun(self, part: _Part, layer: Layer, attended: Tensor, past: _Past | None) -> Tensor:
        """The rest of the changed layer's block: its attention answers with what is known."""
        with hooks.stand_in(layer.attention, lambda *_, **__: _like(part.attended, attended)):
            return part.calls[layer.index].again(layer.block, part.hidden, past)

    def _upwards(self, start: int, parts: Sequence[_Part], hidden: list[Tensor], past: _Past | None) -> Tensor:
        """Through the layers above; the last one at the answer's positions only, (batch, k, width)."""
        blocks = self.model.blocks
        for k in range(start, len(blocks) - 1):
            hidden = [part.calls[k].again(blocks[k], h, past) for part, h in zip(parts, hidden)]
        top = self.model.layers[-1]
        if top.index != len(blocks) - 1:  # a hybrid model whose last layer has no attention
            out = parts[-1].calls[-1].again(blocks[-1], hidden[-1], past)
            return hooks.take_positions(out, self.at)
        attended = [self._attend(part, top, h, past) for part, h in zip(parts, hidden)]  # the prefix only leaves its keys and values
        return self._block_after(parts[-1], top, hooks.take_positions(hidden[-1], self.at), self._at(_first(attended[-1])))

    def _attend(self, part: _Part, layer: Layer, hidden: Tensor, past: _Past | None) -> Any:
        """A layer's attention without what follows it in the block."""
        real, got = layer.attention.forward, []

        def attention(*args: Any, **kwargs: Any) -> Any:
            got.append(real(*args, **kwargs))
            raise _Enough

        with hooks.stand_in(layer.attention, attention):
            try:
                part.calls[layer.index].again(layer.block, hidden, past)
            except _Enough:
                pass
        return got[0]

    def _block_after(self, part: _Part, layer: Layer, hidden: Tensor, attended: Tensor) -> Tensor:
        """A block at some positions only: once its attention is known, nothing in it looks at other positions."""
        given = (attended, None) if isinstance(part.attended, tuple) or part.attended is None else attended
        with hooks.stand_in(layer.attention, lambda *_, **__: given):
            return part.calls[layer.index].again(layer.block, hidden, None)

    def _at(self, attended: Tensor) -> Tensor:
        return hooks.take_positions(attended, self.at)

    def _tail(self, hidden: Tensor) -> Tensor:
        """From the last layer's output (batch, k, width) to logits, by the model's own code: every block but the last passes on what it gets."""
        calls = self.parts[-1].calls

        def through(call: _Call, given: Tensor | None) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                out = given if given is not None else (args[0] if args else kwargs["hidden_states"])
                return (out, None) if call.tuple_out else out

            return forward

        with ExitStack() as stack:
            for block, call in zip(self.model.blocks[:-1], calls):
                stack.enter_context(hooks.stand_in(block, through(call, None)))
            stack.enter_context(hooks.stand_in(self.model.blocks[-1], through(calls[-1], hidden)))
            ids = self.batch.answer  # any of that shape: no block reads them
            logits: Tensor = self.model.module(input_ids=ids, **nothing_kept(self.model)).logits
        return logits


def _first(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple) else out  # type: ignore[no-any-return]


def _like(out: Any, first: Tensor) -> Any:
    """``first`` in the form of ``out``."""
    return (first, *out[1:]) if isinstance(out, tuple) else first

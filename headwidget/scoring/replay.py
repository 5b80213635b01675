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

from headwidget.models import Layer, Model, hooks
from headwidget.models.caches import nothing_kept
from headwidget.scoring.batch import Batch, collate, correct, log_probability
from headwidget.scoring.encode import Encoded

SHORTEST_PREFIX = 4
"""A shared prefix of fewer tokens is not worth a run of its own."""
PREFIX_TOKENS = 512
"""A prefix runs for several heads at once, up to this many tokens: alone, a short one would leave the device idle."""
MOST_LOGITS = 2**26
"""Heads are unembedded together up to this many logits, so that the vocabulary's weights are read once for all of them."""


def shared_prefix(examples: Sequence[Encoded]) -> int:
    """How many leading tokens all examples share, leaving to each the position that predicts its answer."""
    first, last = (
        min(e.ids for e in examples),
        max(e.ids for e in examples),
    )  # these two differ the most
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

        hooks.check_stop()

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
    copy: int = 0
    """Which of the prefix's copies, each with another head changed, is the one to go on from."""

    def update(
        self, key: Tensor, value: Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        if layer not in self.held:
            self.held[layer] = key, value
            return key, value
        one = slice(self.copy, self.copy + 1)
        k, v = (
            kept[one].expand(len(key), -1, -1, -1) for kept in self.held[layer]
        )  # (batch, kv head, prefix, dim)
        return torch.cat([k, key], dim=-2), torch.cat([v, value], dim=-2)


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
    real: Callable[..., Any] = field(default=lambda: None)  # the current layer's own attention

    def see_z(self, args: Any, kwargs: Any, out: Any) -> None:
        self.z = args[0]

    def attend(self, *args: Any, **kwargs: Any) -> Any:
        """The layer's attention, noted as it gives it: hooks of the user's come after, here as in every replay."""
        self.attended = self.real(*args, **kwargs)
        return self.attended


class Replay:
    """Walks a batch layer by layer (:meth:`step`), and at each layer says what the answers would be :meth:`without` a head."""

    def __init__(self, model: Model, runs: Sequence[int], examples: Sequence[Encoded]) -> None:
        self.model = model
        self.batch: Batch = collate(runs, examples, model)
        causal = not model.encoder and len(model.blocks) == len(model.layers)
        causal = causal and (
            model.rope_switch is None or max(len(e.ids) for e in examples) <= model.rope_switch
        )
        prefix = shared_prefix(examples) if causal and len(examples) > 1 else 0
        self.prefix = prefix if prefix >= SHORTEST_PREFIX else 0
        """How many leading tokens are run once for all."""
        self.copies = max(1, min(model.n_heads, PREFIX_TOKENS // self.prefix)) if self.prefix else 1
        """For how many heads the prefix runs at once."""
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
        start = self.batch.ids[:1, : self.prefix].expand(self.copies, -1)
        self._noting({"input_ids": start, "past_key_values": past, "use_cache": True}, logits=False)
        self.plain = _Past(
            {i: (kept.keys[:1], kept.values[:1]) for i, kept in enumerate(past.layers)}
        )
        past.batch_select_indices(
            torch.zeros(len(self.batch.ids), dtype=torch.long, device=start.device)
        )
        with hooks.unembed_at(self.model, self.at):
            return self._noting(
                {
                    "input_ids": self.batch.ids[:, self.prefix :],
                    "past_key_values": past,
                    "use_cache": True,
                }
            )

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
                first = torch.zeros(self.copies, 1, dtype=torch.long, device=self.batch.ids.device)
                stack.enter_context(hooks.unembed_at(self.model, first))
            out: Tensor = self.model.module(**inputs).logits
        if len(calls) != len(self.model.blocks):
            raise RuntimeError(
                f"{self.model.name} ran {len(calls)} of its {len(self.model.blocks)} layers once each; it cannot be replayed layer by layer."
            )
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
            part.z, part.real = None, layer.attention.forward
            with (
                hooks.watch(layer.projection, part.see_z),
                hooks.stand_in(layer.attention, part.attend),
            ):
                part.out = part.calls[layer.index].again(layer.block, part.hidden, past)
            if part.z is None:
                raise RuntimeError(
                    f"{layer.name} was never called while the model ran, so its heads cannot be reached (does the layer use its weight directly?)."
                )
        return layer

    def without(
        self, heads: Sequence[int], fill: Tensor | None = None, *, answer_only: bool = False
    ) -> Tensor:
        """log p(answer), (head, batch), with each of ``heads`` in turn replaced: by its row of ``fill`` (head, dim), else by zero.

        ``answer_only`` replaces it where the answer is predicted, and leaves it as it is at all other positions.
        """
        finals: list[Tensor] = []
        for start in range(0, len(heads), self.copies):
            group = heads[start : start + self.copies]
            past = self._past(self.plain) if answer_only else self._prefix_without(group, fill)
            for copy, head in enumerate(group):
                if past is not None and not answer_only:
                    past.copy = copy
                finals.append(self._end_without(head, fill, answer_only, past))
        return self._answers(finals)

    def _prefix_without(self, heads: Sequence[int], fill: Tensor | None) -> _Past | None:
        """The prefix's keys and values above the current layer, a copy for each of ``heads``; None without a prefix."""
        past, layer, part = self._past(), self.model.layers[self.row], self.parts[0]
        if past is None or layer is self.model.layers[-1]:
            return past
        padded = [*heads, *[heads[-1]] * (self.copies - len(heads))]
        one = [
            self._changed(part, layer, head, fill, False, slice(i, i + 1))
            for i, head in enumerate(padded)
        ]
        hidden = self._rerun(part, layer, torch.cat(one), past)
        for k in range(layer.index + 1, len(self.model.blocks) - 1):
            hidden = part.calls[k].again(self.model.blocks[k], hidden, past)
        self._attend(
            part, self.model.layers[-1], hidden, past
        )  # the last layer's are all that is needed of it
        return past

    def _end_without(
        self, head: int, fill: Tensor | None, answer_only: bool, past: _Past | None
    ) -> Tensor:
        """What follows the prefix, through the layers above; the last layer's output at the answer's positions, (batch, k, width)."""
        layer, part, blocks = self.model.layers[self.row], self.parts[-1], self.model.blocks
        attended = self._changed(part, layer, head, fill, answer_only)
        if layer.index == len(blocks) - 1:
            return self._block_after(part, layer, self._at(part.hidden), self._at(attended))
        hidden = self._rerun(part, layer, attended, past)
        for k in range(layer.index + 1, len(blocks) - 1):
            hidden = part.calls[k].again(blocks[k], hidden, past)
        top = self.model.layers[-1]
        if top.index != len(blocks) - 1:  # a hybrid model whose last layer has no attention
            return self._at(part.calls[-1].again(blocks[-1], hidden, past))
        return self._block_after(
            part, top, self._at(hidden), self._at(_first(self._attend(part, top, hidden, past)))
        )

    def _answers(self, finals: Sequence[Tensor]) -> Tensor:
        """log p(answer), (head, batch), from the last layer's outputs, as many unembedded at once as memory allows."""
        batch, k, _ = finals[0].shape
        together = max(
            1, MOST_LOGITS // (batch * k * self.model.config.get_text_config().vocab_size)
        )
        found = []
        for start in range(0, len(finals), together):
            part = torch.stack(list(finals[start : start + together]))  # (head, batch, k, width)
            logits = self._tail(part.flatten(0, 1))
            found += [
                log_probability(one, self.batch)
                for one in logits.reshape(*part.shape[:2], *logits.shape[1:])
            ]
        return torch.stack(found)

    def finish(self) -> Tensor:
        """How far the walk's own log p(answer) is :meth:`off` the model's, (batch,): zero but for rounding, or the replay cannot be trusted."""
        past, hidden = self._past(), [part.out for part in self.parts]
        for k in range(self.model.layers[-1].index + 1, len(self.model.blocks)):
            hidden = [
                p.calls[k].again(self.model.blocks[k], h, past)
                for p, h in zip(self.parts, hidden)
                if h is not None
            ]
        assert hidden[-1] is not None
        return self.off(self._answers([self._at(hidden[-1])])[0], self.base)

    def off(self, one: Tensor, other: Tensor) -> Tensor:
        """How far two log p(answer) are apart, relative to the untouched model's."""
        return (one - other).abs() / (1 + self.base.abs())

    # ---- pieces ----

    def _past(self, start: _Past | None = None) -> _Past | None:
        """The prefix's keys and values on a walk of their own; None without a prefix."""
        return _Past(dict(start.held) if start else {}) if self.prefix else None

    def _changed(
        self,
        part: _Part,
        layer: Layer,
        head: int,
        fill: Tensor | None,
        answer_only: bool,
        rows: slice = slice(None),
    ) -> Tensor:
        """What attention gives once the head's output is replaced, (batch, seq, width)."""
        assert part.z is not None
        own = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        lost = (
            part.z[rows, :, own]
            if fill is None
            else part.z[rows, :, own] - fill[head].to(part.z.device, part.z.dtype)
        )
        if answer_only:
            here = torch.zeros(lost.shape[:2], dtype=lost.dtype, device=lost.device).scatter_(
                1, self.at.to(lost.device), 1
            )
            lost = lost * here[..., None]
        before = _first(part.attended)[rows]
        if layer.inside:
            return before - layer.writes(lost, head)
        after = before.clone()
        after[..., own] -= lost
        return after

    def _rerun(self, part: _Part, layer: Layer, attended: Tensor, past: _Past | None) -> Tensor:
        """The rest of the changed layer's block: its attention answers with what is known."""
        with hooks.stand_in(layer.attention, lambda *_, **__: _like(part.attended, attended)):
            return part.calls[layer.index].again(layer.block, part.hidden, past)

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
        with hooks.stand_in(layer.attention, lambda *_, **__: _like(part.attended, attended)):
            return part.calls[layer.index].again(layer.block, hidden, None)

    def _at(self, hidden: Tensor) -> Tensor:
        return hooks.take_positions(hidden, self.at)

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
            ids = self.batch.answer.repeat(
                len(hidden) // len(self.batch.answer), 1
            )  # any of that shape: no block reads them
            logits: Tensor = self.model.module(input_ids=ids, **nothing_kept(self.model)).logits
        return logits


def _first(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple) else out  # type: ignore[no-any-return]


def _like(out: Any, first: Tensor) -> Any:
    """``first`` in the form of ``out``."""
    return (first, *out[1:]) if isinstance(out, tuple) else first

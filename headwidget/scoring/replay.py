"""Replay: a batch's forward, kept so that the model can run again from any layer on.

A replay changes the output of one head and computes what follows; nothing below the
changed layer runs again. A prefix that all prompts share runs as a batch of one, and its
keys and values are expanded over the prompts. The last layer runs its MLP at the answer's
positions only. The model's own modules do all the computing: each block is called with
the arguments that the model itself passed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache

from headwidget.models import Layer, Model, hooks
from headwidget.models.caches import PrefixCache, kept_in, nothing_kept
from headwidget.scoring.batch import MOST_LOGITS, Batch, collate, correct, log_probability
from headwidget.scoring.encode import Encoded
from headwidget.scoring.prefix import usable_prefix

PREFIX_TOKENS = 512
"""A prefix runs for several heads at once, up to this many tokens: a short one alone would
leave the device idle."""


@dataclass
class _Call:
    """How the model called a block: everything but the hidden states."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    returns_tuple: bool

    def again(self, block: nn.Module, hidden: Tensor, past: PrefixCache | None) -> Tensor:
        """The block's output for other hidden states, with ``past`` in place of its cache."""
        hooks.check_stop()

        def replaced(argument: Any) -> Any:
            return past if past is not None and isinstance(argument, Cache) else argument

        args = [replaced(argument) for argument in self.args]
        kwargs = {name: replaced(argument) for name, argument in self.kwargs.items()}
        return _first(block(hidden, *args, **kwargs))


class _Attended(Exception):
    """Leaves a block once its attention is computed."""


@dataclass
class _Part:
    """The shared prefix or what follows it, on its way through the layers."""

    calls: list[_Call]
    hidden: Tensor
    """Input of the current layer, (batch, seq, width)."""
    z: Tensor | None = None
    """Heads' outputs in the current layer, (batch, seq, heads * dim)."""
    attended: Any = None
    """Output of the current layer's attention module."""
    out: Tensor | None = None
    """Output of the current layer."""
    attention: Callable[..., Any] = field(default=lambda: None)
    """The current layer's own attention forward."""

    def see_z(self, args: Any, kwargs: Any, out: Any) -> None:
        self.z = args[0]

    def attend(self, *args: Any, **kwargs: Any) -> Any:
        """Run the layer's attention and keep its output.

        The output is taken before the user's own hooks, which run again in every replay.
        """
        self.attended = self.attention(*args, **kwargs)
        return self.attended


class Replay:
    """Walks a batch layer by layer (:meth:`step`) and changes heads (:meth:`without`)."""

    def __init__(
        self,
        model: Model,
        runs: Sequence[int],
        examples: Sequence[Encoded],
        copies: int | None = None,
        *,
        check_links: bool = False,
    ) -> None:
        self.model = model
        self.batch: Batch = collate(runs, examples, model)
        self.prefix = usable_prefix(model, examples)
        """How many leading tokens run once for all prompts."""
        room = max(1, PREFIX_TOKENS // self.prefix) if self.prefix else 1
        self.copies = min(copies or model.n_heads, room)
        """For how many heads the prefix runs at once."""
        self.linked = True
        """Does every block read what the one before gave, to the bit? Looked at with
        ``check_links``, as the host waits for the answer."""
        self._check_links = check_links
        self.at = self.batch.at - self.prefix
        self.parts: list[_Part] = []
        self.plain_past: PrefixCache | None = None
        """The prefix's keys and values with no head changed; None without a prefix."""
        with hooks.scoring(model):
            logits = self._capture()
            self.base = log_probability(logits, self.batch)
            """log p(answer) of the untouched model, (batch,)."""
            self.correct = correct(logits, self.batch)
        self.row = -1

    def _capture(self) -> Tensor:
        """One plain forward that notes how each block is called; logits at the answer."""
        if not self.prefix:
            return self._noting(self.batch.inputs(self.model), self.at)
        past = self.plain_past = self._new_past()
        ids = self.batch.ids[:1, : self.prefix].expand(self.copies, -1)
        one_position = torch.zeros(self.copies, 1, dtype=torch.long, device=ids.device)
        # the prefix predicts nothing
        self._noting({"input_ids": ids, **kept_in(past)}, one_position)
        rest = {"input_ids": self.batch.ids[:, self.prefix :], **kept_in(past)}
        return self._noting(rest, self.at)

    def _noting(self, inputs: dict[str, Any], positions: Tensor) -> Tensor:
        """Logits at ``positions`` of a forward whose calls of blocks become a new part."""
        calls: list[_Call] = []
        first_hidden: list[Tensor] = []
        before: list[tuple[Tensor, int]] = []  # what the last block gave, and its version

        def see(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            kwargs = dict(kwargs)
            hidden, rest = (args[0], args[1:]) if args else (kwargs.pop("hidden_states"), ())
            if not calls:
                first_hidden.append(hidden)
            if self._check_links:
                self.linked = self.linked and all(_is_same(hidden, *last) for last in before)
                before[:] = [(_first(out), _version(_first(out)))]
            calls.append(_Call(tuple(rest), kwargs, isinstance(out, tuple)))

        with hooks.together(*(hooks.watch(block, see) for block in self.model.blocks)):
            logits = hooks.logits_at(self.model, inputs, positions)
        if len(calls) != len(self.model.blocks):
            raise RuntimeError(
                f"{self.model.name} ran {len(calls)} of its {len(self.model.blocks)} layers once "
                "each; it cannot be replayed layer by layer."
            )
        self.parts.append(_Part(calls, first_hidden[0]))
        return logits

    # ---- the walk ----

    def step(self) -> Layer:
        """On to the next layer with attention: its heads' outputs are known, none is changed."""
        self.row += 1
        layer = self.model.layers[self.row]
        begin = self.model.layers[self.row - 1].index + 1 if self.row else 0
        past = self._new_past() if self.prefix else None
        for part in self.parts:
            if part.out is not None:
                part.hidden = part.out
            part.hidden = self._through(part, part.hidden, past, range(begin, layer.index))
            part.z, part.attention = None, layer.attention.forward
            with (
                hooks.watch(layer.projection, part.see_z),
                hooks.stand_in(layer.attention, part.attend),
            ):
                part.out = part.calls[layer.index].again(layer.block, part.hidden, past)
            if part.z is None:
                raise RuntimeError(
                    f"{layer.name} was never called while the model ran, so its heads cannot be "
                    "reached (does the layer use its weight directly?)."
                )
        return layer

    def without(
        self, heads: Sequence[int], fill: Tensor | None = None, *, answer_only: bool = False
    ) -> Tensor:
        """log p(answer) with each of ``heads`` in turn replaced, (head, batch).

        A head's output becomes its row of ``fill`` (head, dim), or zero. ``answer_only``
        replaces it where the answer is predicted and nowhere else.
        """
        finals: list[Tensor] = []
        for start in range(0, len(heads), self.copies):
            group = heads[start : start + self.copies]
            past = self.plain_past if answer_only else self._prefix_without(group, fill)
            for copy, head in enumerate(group):
                if past is not None and not answer_only:
                    past.row = copy
                finals.append(self._end_without(head, fill, answer_only, past))
        return self._answers(finals)

    def _prefix_without(self, heads: Sequence[int], fill: Tensor | None) -> PrefixCache | None:
        """The prefix's keys and values above the current layer, a row for each of ``heads``.

        None without a prefix.
        """
        if not self.prefix:
            return None
        past, layer, part = self._new_past(), self.model.layers[self.row], self.parts[0]
        top = self.model.layers[-1]
        if layer is top:
            return past
        padded = [*heads, *[heads[-1]] * (self.copies - len(heads))]
        changed = [
            self._changed(part, layer, head, fill, False, slice(copy, copy + 1))
            for copy, head in enumerate(padded)
        ]
        hidden = self._rerun(part, layer, torch.cat(changed), past)
        hidden = self._through(part, hidden, past, self._between(layer))
        self._attend(part, top, hidden, past)  # of the last layer only keys and values are needed
        return past

    def _end_without(
        self, head: int, fill: Tensor | None, answer_only: bool, past: PrefixCache | None
    ) -> Tensor:
        """The last layer's output at the answer's positions, (batch, k, width)."""
        layer, part, blocks = self.model.layers[self.row], self.parts[-1], self.model.blocks
        attended = self._changed(part, layer, head, fill, answer_only)
        if layer.index == len(blocks) - 1:
            return self._block_after(part, layer, self._at(part.hidden), self._at(attended))
        hidden = self._rerun(part, layer, attended, past)
        hidden = self._through(part, hidden, past, self._between(layer))
        top = self.model.layers[-1]
        if top.index != len(blocks) - 1:  # a hybrid model whose last layer has no attention
            return self._at(part.calls[-1].again(blocks[-1], hidden, past))
        attended = _first(self._attend(part, top, hidden, past))
        return self._block_after(part, top, self._at(hidden), self._at(attended))

    def _answers(self, finals: Sequence[Tensor]) -> Tensor:
        """log p(answer), (head, batch), from the last layer's outputs.

        As many heads are unembedded at once as memory allows.
        """
        batch, k, _ = finals[0].shape
        vocabulary = self.model.text.vocab_size
        at_once = max(1, MOST_LOGITS // (batch * k * vocabulary))
        answers = []
        for start in range(0, len(finals), at_once):
            hidden = torch.stack(list(finals[start : start + at_once]))  # (head, batch, k, width)
            logits = self._tail(hidden.flatten(0, 1))
            by_head = logits.reshape(*hidden.shape[:2], *logits.shape[1:])
            answers += [log_probability(of_head, self.batch) for of_head in by_head]
        return torch.stack(answers)

    def finish(self) -> Tensor:
        """How far the walk's log p(answer) is :meth:`off` the model's own, (batch,).

        It is zero but for rounding, or the replay cannot be trusted.
        """
        past = self._new_past() if self.prefix else None
        rest = range(self.model.layers[-1].index + 1, len(self.model.blocks))
        for part in self.parts:
            assert part.out is not None
            hidden = self._through(part, part.out, past, rest)
        return self.off(self._answers([self._at(hidden)])[0], self.base)

    def off(self, log_p: Tensor, expected: Tensor) -> Tensor:
        """How far two log p(answer) are apart, relative to the untouched model's."""
        return (log_p - expected).abs() / (1 + self.base.abs())

    # ---- pieces ----

    def _new_past(self) -> PrefixCache:
        """An empty cache for the prefix; all prompts go on from its first row."""
        past = PrefixCache()
        past.row = 0
        return past

    def _between(self, layer: Layer) -> range:
        """The blocks above ``layer`` but for the last."""
        return range(layer.index + 1, len(self.model.blocks) - 1)

    def _through(
        self, part: _Part, hidden: Tensor, past: PrefixCache | None, indices: range
    ) -> Tensor:
        """The output of several blocks in a row."""
        for index in indices:
            hidden = part.calls[index].again(self.model.blocks[index], hidden, past)
        return hidden

    def _changed(
        self,
        part: _Part,
        layer: Layer,
        head: int,
        fill: Tensor | None,
        answer_only: bool,
        rows: slice = slice(None),
    ) -> Tensor:
        """The attention module's output once the head's is replaced, (batch, seq, width)."""
        assert part.z is not None
        columns = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        lost = part.z[rows, :, columns]
        if fill is not None:
            lost = lost - fill[head, : layer.head_dim].to(lost.device, lost.dtype)
        if answer_only:
            at_answer = torch.zeros(lost.shape[:2], dtype=lost.dtype, device=lost.device)
            at_answer.scatter_(1, self.at.to(lost.device), 1)
            lost = lost * at_answer[..., None]
        return layer.without(head, lost, part.z[rows], _first(part.attended)[rows])

    def _rerun(
        self, part: _Part, layer: Layer, attended: Tensor, past: PrefixCache | None
    ) -> Tensor:
        """The changed layer's block with ``attended`` as its attention's output."""
        with hooks.stand_in(layer.attention, lambda *_, **__: _like(part.attended, attended)):
            return part.calls[layer.index].again(layer.block, part.hidden, past)

    def _attend(self, part: _Part, layer: Layer, hidden: Tensor, past: PrefixCache | None) -> Any:
        """A layer's attention without what follows it in the block."""
        forward, outputs = layer.attention.forward, []

        def attention(*args: Any, **kwargs: Any) -> Any:
            outputs.append(forward(*args, **kwargs))
            raise _Attended

        with hooks.stand_in(layer.attention, attention):
            try:
                part.calls[layer.index].again(layer.block, hidden, past)
            except _Attended:
                pass
        return outputs[0]

    def _block_after(self, part: _Part, layer: Layer, hidden: Tensor, attended: Tensor) -> Tensor:
        """A block at some positions only.

        Once its attention is known, nothing in it looks at other positions.
        """
        with hooks.stand_in(layer.attention, lambda *_, **__: _like(part.attended, attended)):
            return part.calls[layer.index].again(layer.block, hidden, None)

    def _at(self, hidden: Tensor) -> Tensor:
        return hooks.take_positions(hidden, self.at)

    def _tail(self, hidden: Tensor) -> Tensor:
        """From the last layer's output (batch, k, width) to logits, by the model's own code.

        The last block answers with ``hidden``; every other block passes on its input.
        """
        blocks, calls = self.model.blocks, self.parts[-1].calls
        repeats = len(hidden) // len(self.batch.answer)
        ids = self.batch.answer.repeat(repeats, 1)  # any of that shape: no block reads them
        stand_ins = [hooks.stand_in(block, _passes_on(call)) for block, call in zip(blocks, calls)]
        stand_ins[-1] = hooks.stand_in(blocks[-1], _passes_on(calls[-1], hidden))
        with hooks.together(*stand_ins):
            logits: Tensor = self.model.module(input_ids=ids, **nothing_kept(self.model)).logits
        return logits


def _passes_on(call: _Call, answer: Tensor | None = None) -> Callable[..., Any]:
    """A block's forward that gives ``answer``, or its input, in the form that the block does."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        out = answer
        if out is None:
            out = args[0] if args else kwargs["hidden_states"]
        return (out, None) if call.returns_tuple else out

    return forward


def _version(tensor: Tensor) -> int:
    """How often a tensor was changed in place; 0 under inference mode, which does not count."""
    return 0 if tensor.is_inference() else tensor._version


def _is_same(hidden: Tensor, out: Tensor, version: int) -> bool:
    """Is what a block reads what the one before gave, and was that not changed meanwhile?"""
    if _version(out) != version or hidden.shape != out.shape:
        return False
    return hidden is out or torch.equal(hidden.to(out.device), out)


def _first(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple) else out  # type: ignore[no-any-return]


def _like(out: Any, first: Tensor) -> Any:
    """``first`` in the form of ``out``."""
    return (first, *out[1:]) if isinstance(out, tuple) else first

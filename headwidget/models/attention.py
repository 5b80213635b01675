"""Attention weights (batch, head, query, key) of one layer at a time, for any architecture.

While a layer's attention module runs, its calls of torch's ``scaled_dot_product_attention``
and ``softmax`` are watched, for this thread and this call of the module alone. By then
everything is in the arguments: rotated queries and keys (partial or scaled rotation too),
shared keys (GQA), ALiBi, learned positions, windows, softcaps, padding. Behind a softmax the
weights are what is then multiplied with the values, so that a change in between is seen.
``scaled_dot_product_attention`` never shows them, so they are computed again from the same
query, key and mask. The model's own output stays, bit for bit.

Why this way. All families in ``families.py`` end in one of the two calls, so nothing here
knows an architecture. Switching a model to eager attention changes the model, and keeps
every layer's weights at once. Replacing entries of transformers' table of attention
functions misses GPT-J, Falcon and BLOOM, and changes what all models of the process share.
One-hot positions in place of the values would show the weights too, at several calls a
layer, and would have to find the values in fused projections first. Kernels outside torch
(flash attention packages, flex attention) are not reached; an error says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from headwidget.models import hooks
from headwidget.models.altering import Altered
from headwidget.models.caches import nothing_kept
from headwidget.models.encoder_decoder import answered_ids
from headwidget.models.layers import Layer
from headwidget.models.model import Model
from headwidget.models.weights import working

ENTRIES = 2**25
"""About how many weights are computed at a time (128 MB in float32); one head's at least."""

Take = Callable[[int, slice, Tensor], None]
_SOFTMAX = (functional.softmax, torch.softmax, torch.Tensor.softmax)
_PRODUCTS = (
    *(torch.matmul, torch.bmm),
    *(torch.Tensor.matmul, torch.Tensor.bmm, torch.Tensor.__matmul__),
)


def read(model: Model, take: Take, rows: Sequence[int] | None = None) -> Altered:
    """Call ``take(row, heads, weights)`` as the model runs.

    It is called for every attention layer, or those in ``rows``; weights are (batch, head,
    query, key), float32. A layer's heads may come in several slices, so that long prompts
    need little memory: weights that ``take`` does not keep are freed before the next slice.
    The weights of a head with a sink (gpt-oss) sum to less than 1; the sink has the rest.
    """
    chosen = range(len(model.layers)) if rows is None else rows
    ran: set[int] = set()

    def place(rows: list[int]) -> Callable[..., Any]:
        first, calls = model.layers[rows[0]], itertools.count()
        inner, by_turn = first.attention.forward, {model.layers[row].turn: row for row in rows}

        def forward(*args: Any, **kwargs: Any) -> Any:
            row = by_turn.get(next(calls) % first.turns)
            if row is None:
                return inner(*args, **kwargs)
            layer = model.layers[row]
            ran.add(row)
            with _Watcher(layer, lambda heads, weights: take(row, heads, weights)) as watcher:
                out = inner(*args, **kwargs)
                watcher.end()
            if watcher.heads != layer.heads:
                raise RuntimeError(_unreached(model, layer, watcher.heads))
            return out

        return forward

    def check() -> None:
        if missing := [model.layers[row] for row in chosen if row not in ran]:
            raise RuntimeError(_unreached(model, missing[0], 0))

    by_module: dict[nn.Module, list[int]] = {}  # several rows where layers share their modules
    for row in chosen:
        by_module.setdefault(model.layers[row].attention, []).append(row)
    stand_ins = [hooks.stand_in(module, place(rows)) for module, rows in by_module.items()]
    return Altered(hooks.together(*stand_ins).make, check)


def weights(model: Model, ids: Tensor | Sequence[int] | Mapping[str, Any], row: int) -> Tensor:
    """The attention weights of one layer, (batch, head, query, key), float32.

    ``row`` counts the layers with attention. ``ids`` is one prompt or a batch of equal
    length, or the model's own keyword arguments (ids, mask, …); an encoder-decoder model
    needs ``decoder_input_ids`` too, and the keys of its cross-attention are the source's. A
    classifier needs what its processor gives (``{"pixel_values": …}``).

    >>> import headwidget as hw
    >>> from headwidget.models import attention
    >>> model = hw.load()
    >>> attention.weights(model, model.tokenizer("one two three")["input_ids"], 4).shape
    torch.Size([1, 9, 3, 3])
    """
    check(model)
    if not 0 <= row < len(model.layers):
        raise IndexError(
            f"row counts the layers with attention, 0 to {len(model.layers) - 1}; got {row}."
        )
    if isinstance(ids, Mapping):
        inputs = dict(ids)
    elif model.classifier:
        raise ValueError(
            f"{model.name} reads no tokens; give what its processor makes of an image or a sound: "
            f"{{{model.module.main_input_name!r}: …}}."
        )
    elif model.encoder_decoder:
        raise ValueError(
            f"{model.name} reads a source and what its decoder has said; give both: "
            "{'input_ids': …, 'decoder_input_ids': …}."
        )
    else:
        prompts = torch.as_tensor(ids).to(model.device)
        prompts = prompts[None] if prompts.dim() == 1 else prompts
        inputs = {"input_ids": prompts, **nothing_kept(model)}
    if model.classifier:
        one_position = torch.zeros(1, 1, dtype=torch.long)  # it answers once
    else:
        one_position = torch.zeros_like(answered_ids(inputs)[:, :1])  # logits are not needed
    slices: list[Tensor] = []
    with hooks.scoring(model), read(model, lambda _, __, part: slices.append(part), [row]):
        hooks.logits_at(model, inputs, one_position)
    return torch.cat(slices, dim=1)


def check(model: Model) -> None:
    """Refuse, before any forward, a model whose attention kernel does not show its weights."""
    how = str(getattr(model.text, "_attn_implementation", ""))
    if "flash" in how or "flex" in how:
        raise ValueError(
            f"{model.name} runs attention by {how!r}, a kernel that does not return its weights; "
            "load the model with attn_implementation='sdpa' or 'eager' to read them."
        )


class _Watcher(TorchFunctionMode):
    """Passes on the weights of one attention module's softmax or scaled_dot_product_attention."""

    def __init__(self, layer: Layer, take: Callable[[slice, Tensor], None]) -> None:
        super().__init__()
        self.layer, self.take = layer, take
        self.heads = 0
        """How many heads' weights were seen."""
        self.softmax: Tensor | None = None
        """The last softmax over tokens, until it is multiplied with the values."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is functional.scaled_dot_product_attention and self.of_layer(
            *args[:2], **kwargs or {}
        ):
            for heads, weights in _again(*args, **(kwargs or {})):
                self.see(heads, weights)
        elif func in _SOFTMAX and (softmax := self.of_tokens(out)) is not None:
            self.end()
            self.softmax = softmax
        elif func in _PRODUCTS and self.softmax is not None:
            factor, shape = args[0], self.softmax.shape
            if factor.shape[-2:] == (shape[-2], shape[-1] + 1):  # a key of its own, no sink
                self.softmax = None
            elif factor.numel() == self.softmax.numel() and factor.shape[-2:] == shape[-2:]:
                self.softmax = factor.reshape(shape)
                self.end()
        return out

    def end(self) -> None:
        """Pass on the weights of a softmax."""
        if self.softmax is not None:
            weights, self.softmax = self.softmax, None
            self.see(slice(0, weights.shape[1]), weights.to(working(weights.dtype)))

    def see(self, heads: slice, weights: Tensor) -> None:
        self.heads += weights.shape[1]
        self.take(heads, weights)

    def of_tokens(self, out: Tensor) -> Tensor | None:
        """The softmax as (batch, head, query, key), without a sink behind the keys.

        None where it is of something else. Some models put batch and head together.
        """
        heads = self.layer.heads
        if out.dim() == 3 and len(out) % heads == 0:
            out = out.reshape(-1, heads, *out.shape[1:])
        if out.dim() != 4 or out.shape[1] != heads:
            return None
        if self.looks_elsewhere:
            return out
        return out[..., : out.shape[2]] if out.shape[3] - out.shape[2] in (0, 1) else None

    def of_layer(self, query: Tensor, key: Tensor, **_: Any) -> bool:
        """Are queries and keys those of the same tokens, or of a decoder and its source?"""
        return query.dim() == 4 and (self.looks_elsewhere or query.shape[2] == key.shape[2])

    @property
    def looks_elsewhere(self) -> bool:
        """Does a decoder's layer look at its source?"""
        return self.layer.section in ("decoder", "cross")


def _again(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Iterator[tuple[slice, Tensor]]:
    """The weights of a call of scaled_dot_product_attention, some heads at a time.

    ``query`` is (batch, head, query, dim), ``key`` is (batch, key head, key, dim).
    """
    batch, heads, length, dim = query.shape
    shared = heads // key.shape[1]  # query heads a key head
    dtype = working(query.dtype)
    size = (batch, heads, length, key.shape[2])
    mask = None if attn_mask is None else attn_mask.expand(size)
    if is_causal:
        mask = query.new_ones(size[2:], dtype=torch.bool).tril().expand(size)
    grouped = query.reshape(batch, -1, shared, length, dim)
    step = max(1, ENTRIES // (batch * length * key.shape[2] * shared))  # key heads
    for first in range(0, key.shape[1], step):
        keys = key[:, first : first + step, None].to(dtype)  # (batch, key head, 1, key, dim)
        queries = grouped[:, first : first + step].to(dtype)  # (batch, key head, shared, …)
        logits = (queries @ keys.mT).flatten(1, 2) * (dim**-0.5 if scale is None else scale)
        chosen = slice(first * shared, first * shared + logits.shape[1])
        if mask is not None and mask.dtype == torch.bool:
            seen = mask[:, chosen]
            weights = logits.masked_fill(~seen, -math.inf).softmax(-1)
            # a token that sees nothing is padding; any other NaN is the model's own
            yield chosen, weights.masked_fill(~seen.any(-1, keepdim=True), 0.0)
        else:
            yield chosen, (logits if mask is None else logits + mask[:, chosen]).softmax(-1)


def _unreached(model: Model, layer: Layer, heads: int) -> str:
    where = layer.name.rsplit(".", 1)[0]
    seen = "none were seen"
    if heads:
        seen = f"those of {heads} heads were seen where there are {layer.heads}"
    how = getattr(model.text, "_attn_implementation", None)
    return (
        f"the attention weights of {where} ({type(layer.attention).__name__}, {how}) could not be "
        f"read: {seen}. They are read from torch's softmax and scaled_dot_product_attention; load "
        "the model with attn_implementation='sdpa' or 'eager'."
    )

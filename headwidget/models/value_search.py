"""Values by structure: how a model that no table knows makes a head's values.

Two short forwards of random tokens are watched. In the first, the values that attention takes
are looked for among the outputs of all linear maps and norms, number by number, and so is what
these read, until what the attention reads is reached. In the second, of other tokens, the
values computed from the weights must be those that attention takes, and what attention makes
of them must be what the output projection takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwidget.models import hooks, tracing
from headwidget.models.layers import Kind
from headwidget.models.multiples import ALLOWED, is_constant_multiple, is_gated, is_multiple, off
from headwidget.models.straight import is_norm
from headwidget.models.tracing import Attended, Call, Trace
from headwidget.models.unembedded import check_unembedded
from headwidget.models.value_paths import Step, ValuePath, linear

if TYPE_CHECKING:
    from headwidget.models.layers import Layer
    from headwidget.models.model import Model

SEEDS = (3, 4)
"""Of the tokens that values are looked for with, and of those that they are proven with."""
USE = "use method='ablation' or 'gradient'"


def find(model: Model) -> None:
    """Find how every layer of a model that no table knows makes values; raise where none is.

    They are kept in the model's layers.
    """
    if model.family.table or model.layers[-1].value_path is not None:
        return
    if model.no_values is None:
        with hooks.scoring(model):
            why_not = _find(model)
        if why_not is None:
            return
        if model.hooked:  # a hook may be taken off again
            raise ValueError(why_not)
        model.no_values = why_not
    raise ValueError(model.no_values)


def _find(model: Model) -> str | None:
    """Find and prove the values of all layers, or say why not."""
    try:
        searched, proven = (_Watched(model, seed) for seed in SEEDS)
        paths = [searched.path(layer) for layer in model.layers]
        for layer, path in zip(model.layers, paths):
            proven.prove(layer, path)
        check_unembedded(model)
    except ValueError as error:  # others, such as weights that cannot be read, are not kept
        return str(error)
    for layer, path in zip(model.layers, paths):
        layer.value_path = path
    return None


def kinds_of_heads(model: Model) -> Counter[Kind]:
    """What is special about heads, and in how many layers; of the families found by structure.

    The first call watches one short forward.
    """
    if model.family.table or model.encoder_decoder or model.classifier:
        return Counter()
    if model.kinds is None:
        kinds: list[Kind] = []
        try:
            with hooks.scoring(model):
                watched = _Watched(model, SEEDS[0])
                kinds = [kind for layer in model.layers for kind in watched.kinds(layer)]
        except Exception:  # a model that no longer runs is described without
            pass
        model.kinds = Counter(kinds)
    return model.kinds


class _Watched:
    """One forward of random tokens, all its tensors kept."""

    def __init__(self, model: Model, seed: int) -> None:
        self.model = model
        self.trace: Trace = tracing.traced(model.module, keep=True, seed=seed)
        self.number = {id(call): number for number, call in enumerate(self.trace.calls)}
        counts: Counter[str] = Counter()
        self.turn: dict[int, int] = {}  # by id of a call: how many came before of the same name
        for call in self.trace.calls:
            self.turn[id(call)] = counts[call.name]
            counts[call.name] += 1

    # ---- what happened in a layer ----

    def attended(self, layer: Layer) -> tuple[Attended, Call]:
        """A layer's attention and its output projection's call; a sentence where it is not seen."""
        own = [
            (attended, attended.projection)
            for attended in self.trace.attended
            if attended.projection is not None
            and attended.projection.module is layer.projection
            and self.turn[id(attended.projection)] == layer.turn
        ]
        if len(own) != 1 or own[0][0].value is None or own[0][0].output is None:
            raise ValueError(self._refusal(layer, "does not show which values its attention takes"))
        return own[0]

    def block(self, layer: Layer) -> str:
        """The name of the layer's block, with a dot behind it."""
        return f"{self._block_of(layer.name)}."

    def _block_of(self, name: str) -> str:
        """The name of the block that a module is in; its parent's where it is in none."""
        parts = name.split(".")
        number = next((i for i, part in enumerate(parts) if part.isdigit()), len(parts) - 2)
        return ".".join(parts[: number + 1])

    def _refusal(self, layer: Layer, why: str) -> str:
        model = self.model
        return (
            "relations reads what a head makes of a word off its weights, but "
            f"{layer.name} of {model.name} ({model.family.name}) {why}, so there is no such map "
            f"that headwidget can prove; {USE}."
        )

    def _check_projected(self, layer: Layer) -> Tensor:
        """The values, (head, key, dim), where the projection takes what attention gives.

        But for a positive factor of a token and head, such as a gate of a whole head.
        """
        attended, projection = self.attended(layer)
        value, out = attended.value, attended.output
        assert value is not None and out is not None
        shape = (layer.heads, attended.queries, layer.head_dim)
        if out.shape != shape or layer.heads % len(value) or value.shape[-1] != layer.head_dim:
            raise ValueError(self._refusal(layer, "does not take the values of its heads"))
        taken = projection.input
        if taken is None or taken.shape[:-1].numel() != attended.queries:
            raise ValueError(self._refusal(layer, "does not take a row for each token"))
        by_head = taken.reshape(attended.queries, layer.heads, -1).transpose(0, 1)
        if not is_multiple(by_head, out, self._allowed):
            what = (
                "takes its attention's output times a gate, which is another for every prompt"
                if is_gated(by_head, out)
                else "does not take its attention's output, but something made of it (a norm, a "
                "gate, a second attention)"
            )
            raise ValueError(self._refusal(layer, what))
        return value.repeat_interleave(layer.heads // len(value), 0)

    @property
    def _allowed(self) -> float:
        return ALLOWED[self.model.dtype.itemsize]

    # ---- from values back to what attention reads ----

    def path(self, layer: Layer) -> ValuePath:
        """How a layer's values are made."""
        values = self._check_projected(layer)  # (head, token, dim)
        wanted = values.transpose(0, 1).flatten(1)  # (token, head * dim)
        _, projection = self.attended(layer)
        steps: list[Step] = []
        before, within = self.number[id(projection)], ""
        while True:
            place = self._source(wanted, before, within)
            if place is None:
                break
            call, columns = place
            steps.insert(0, self._step(call, columns))
            before, within = self.number[id(call)], f"{self._block_of(call.name)}."
            read = _by_token(call.input, len(wanted))
            assert read is not None  # sources are such calls
            wanted = read
        if not steps or steps[0].group is not None:
            raise ValueError(
                self._refusal(layer, "projects values that are no part of a linear map's output")
            )
        self._check_reads_stream(layer, steps[0], wanted, before)
        return _by_head(steps, layer)

    def _source(self, wanted: Tensor, before: int, within: str) -> tuple[Call, Tensor] | None:
        """The last call of a linear map whose output has all of the wanted columns.

        Or that of a norm which a linear map feeds: the norm before attention reads the stream.
        """
        for call in self._calls(before, within):
            is_linear = linear(call.module)
            if not is_linear and not is_norm(call.module):
                continue
            read = _by_token(call.input, len(wanted))
            columns = _columns(wanted, _by_token(call.output, len(wanted)))
            if read is None or columns is None:
                continue
            if is_linear or self._is_made_by_linear(read, call):
                return call, columns
        return None

    def _is_made_by_linear(self, wanted: Tensor, norm: Call) -> bool:
        """Is what a norm reads a part of a linear map's output, in the same block?"""
        within = f"{self._block_of(norm.name)}."
        return any(
            _columns(wanted, _by_token(call.output, len(wanted))) is not None
            for call in self._calls(self.number[id(norm)], within)
            if linear(call.module)
        )

    def _calls(self, before: int, within: str) -> Iterator[Call]:
        """The calls before one, the last first."""
        for call in reversed(self.trace.calls[:before]):
            if call.name.startswith(within):
                yield call

    def _step(self, call: Call, columns: Tensor) -> Step:
        assert call.output is not None
        group = None if linear(call.module) else int(call.output.shape[-1])
        return Step(call.name, call.module, columns, self.turn[id(call)], group)

    def _check_reads_stream(self, layer: Layer, first: Step, read: Tensor, before: int) -> None:
        """The first linear map must read the residual stream, or a norm of it."""
        width = layer.w_o().shape[-1]
        embedding = self.model.module.get_input_embeddings().weight
        if read.shape[1] != width or embedding.shape[1] != width:
            raise ValueError(
                self._refusal(
                    layer,
                    f"has values of {first.name}, which reads {read.shape[1]} numbers, where heads "
                    f"write {width} and a word's embedding has {embedding.shape[1]}",
                )
            )
        block = self._block_of(first.name)
        whole = next((call for call in self._calls(before, "") if call.name == block), None)
        normed = [
            call.input
            for call in self._calls(before, f"{block}.")
            if is_norm(call.module) and is_constant_multiple(read, call.output, self._allowed)
        ]
        for tensor in (read, *normed):
            if whole is not None and self._is_stream(tensor, whole.input):
                return
        what = f"has values of {first.name}, which reads neither the residual stream nor its norm"
        raise ValueError(self._refusal(layer, what))

    def _is_stream(self, tensor: Tensor | None, stream: Tensor | None) -> bool:
        """Is it what a block reads? Of several streams (AltUp): a mixture of them."""
        if tensor is None or stream is None:
            return False
        if stream.dim() == 3 and stream.shape[1:] == tensor.shape:
            columns = stream.double().permute(1, 2, 0)  # (token, width, stream)
            mixed = torch.linalg.lstsq(columns, tensor.double()[..., None]).solution
            return off(tensor, (columns @ mixed)[..., 0]) <= self._allowed
        return is_constant_multiple(tensor, stream, self._allowed)

    # ---- the proof ----

    def prove(self, layer: Layer, path: ValuePath) -> None:
        """The weights must give the values that attention takes in this forward."""
        taken = self._check_projected(layer).double()  # (head, token, dim)
        first = path.steps[0]
        calls = [
            call
            for call in self.trace.calls
            if call.name == first.name and self.turn[id(call)] == first.occurrence
        ]
        read = _by_token(calls[0].input, taken.shape[1]) if calls else None
        if read is None:
            raise ValueError(self._refusal(layer, f"has values of {first.name}, which did not run"))
        values = path.values()
        read = read.to(values.weight.device, torch.float64)
        computed = values.of(read, bias=True).cpu()
        fits = (
            is_multiple(taken, computed, self._allowed)
            if path.scaled
            else off(taken, computed) <= self._allowed
        )
        if not fits:
            names = " and ".join(step.name for step in path.steps)
            what = f"has other values than the weights of {names} give"
            raise ValueError(self._refusal(layer, what))

    # ---- what is special ----

    def kinds(self, layer: Layer) -> Iterator[Kind]:
        """What is special about a layer's heads."""
        try:
            attended, projection = self.attended(layer)
        except ValueError:
            return
        if attended.keys > attended.queries:
            yield "sinks"
        if self._is_gated(layer, attended, projection):
            yield "gated"
        try:
            path = self.path(layer)
        except (ValueError, TypeError):
            return
        if path.latent:
            yield "latent"
        if not path.steps[-1].name.startswith(self.block(layer)):
            yield "shared"

    def _is_gated(self, layer: Layer, attended: Attended, projection: Call) -> bool:
        taken, out = _by_token(projection.input, attended.queries), attended.output
        if taken is None or out is None or taken.numel() != out.numel():
            return False
        return is_gated(taken.reshape(len(taken), layer.heads, -1).transpose(0, 1), out)


# ---- equality of tensors ----


def _by_token(tensor: Tensor | None, tokens: int) -> Tensor | None:
    """(token, column); None where the tensor has no row for each token."""
    if tensor is None:
        return None
    while tensor.dim() > 2 and len(tensor) == 1:
        tensor = tensor[0]
    if tensor.dim() == 3 and len(tensor) != tokens:  # (head, token, dim)
        tensor = tensor.transpose(0, 1)
    return tensor.reshape(tokens, -1) if len(tensor) == tokens and tensor.numel() else None


def _columns(wanted: Tensor, output: Tensor | None) -> Tensor | None:
    """Which columns of an output the wanted ones are, to the bit; None where one is missing."""
    if output is None:
        return None
    wanted, output = wanted.double() + 0.0, output.double() + 0.0  # no negative zeros
    largest = wanted[:, wanted.abs().sum(0).argmax()]
    if not bool((output == largest[:, None]).all(0).any()):
        return None
    places: dict[bytes, list[int]] = {}
    for place, column in enumerate(output.T.contiguous().numpy()):
        places.setdefault(column.tobytes(), []).append(place)
    columns: list[int] = []
    for column in wanted.T.contiguous().numpy():
        equal = places.get(column.tobytes())
        if equal is None:
            return None
        following = columns[-1] + 1 if columns else 0
        columns.append(following if following in equal else equal[0])
    return torch.tensor(columns)


def _by_head(steps: list[Step], layer: Layer) -> ValuePath:
    """The path with the columns of the heads that differ: neighbours may share their values."""
    last = steps[-1]
    columns = last.columns.reshape(layer.heads, -1)
    for repeat in range(layer.heads, 0, -1):
        if layer.heads % repeat == 0:
            groups = columns.reshape(-1, repeat, columns.shape[1])
            if torch.equal(groups, groups[:, :1].expand_as(groups)):
                break
    kept = Step(last.name, last.module, groups[:, 0].flatten(), last.occurrence, last.group)
    return ValuePath((*steps[:-1], kept), len(groups), repeat)

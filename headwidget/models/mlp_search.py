"""The first MLP by structure: block 0's MLP and its norm, in a model that no table knows.

One short forward is watched. The MLP is the child of block 0, or the chain of children, that
reads a norm's output or the residual stream, and gives a row as wide. It is proven by running
it on the rows that it read, in another order: each row must give what it gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from headwidget.models import hooks, tracing, weights
from headwidget.models.multiples import ALLOWED, is_constant_multiple, off
from headwidget.models.straight import is_norm
from headwidget.models.tracing import Call
from headwidget.models.weights import MlpPath

if TYPE_CHECKING:
    from headwidget.models.model import Model


def find(model: Model) -> None:
    """Find the first MLP of a model that no table knows; raise where there is none.

    It is kept in the model.
    """
    if model.family.table or model.mlp_path is not None:
        return
    if model.no_mlp is None:
        with hooks.scoring(model):
            try:
                model.mlp_path = _Block(model).mlp()
                return
            except ValueError as error:
                why_not = str(error)
        if model.hooked:  # a hook may be taken off again
            raise ValueError(why_not)
        model.no_mlp = why_not
    raise ValueError(model.no_mlp)


class _Block:
    """What the children of block 0 read and gave in one forward."""

    def __init__(self, model: Model) -> None:
        self.model = model
        names = {id(part): name for name, part in model.module.named_modules()}
        self.name: str = names[id(model.blocks[0])]
        trace = tracing.traced(model.module, keep=True)
        self.whole = next((call for call in trace.calls if call.name == self.name), None)
        inside = [call for call in trace.calls if call.name.startswith(f"{self.name}.")]
        self.number = {id(call): number for number, call in enumerate(inside)}
        self.norms = [call for call in inside if is_norm(call.module)]
        self.children = [call for call in inside if self._is_child(call)]
        projections = {id(layer.projection) for layer in model.layers}
        self.attention = [
            call
            for call in self.children
            if any(id(part) in projections for part in call.module.modules())
        ]

    def _is_child(self, call: Call) -> bool:
        """Is it a child of the block, or of a list of children?"""
        parent: str = call.name.rpartition(".")[0]
        if isinstance(self.model.module.get_submodule(parent), nn.ModuleList):
            parent = parent.rpartition(".")[0]
        return parent == self.name

    def mlp(self) -> MlpPath:
        """The norm, where there is one, and the MLP's parts one after the other."""
        chains = [chain for call in self.children if (chain := self._chain(call))]
        proven = [chain for chain in chains if self._is_proven(chain)]
        behind = [chain for chain in proven if self._is_behind_attention(chain[0])]
        candidates = behind or proven
        if not candidates or (len(candidates) > 1 and not self._are_added(candidates)):
            raise ValueError(self._refusal([chain[0].name for chain in candidates or chains]))
        norm = self._norm(candidates[0][0])
        branches = (tuple(call.module for call in chain) for chain in candidates)
        return MlpPath(None if norm is None else norm.module, tuple(branches))

    def _are_added(self, chains: list[tuple[Call, ...]]) -> bool:
        """Do several read the same, and is their sum what the block adds to the stream?

        But for a positive factor (a mixture of experts beside a shared one, Granite's).
        """
        first = chains[0][0]
        norm = self._norm(first)
        after = None if self.whole is None else self.whole.output
        before = first.input if norm is None else norm.input
        if before is None or after is None or before.shape != after.shape:
            return False
        if not all(_same(chain[0].input, first.input) for chain in chains):
            return False
        outputs = [chain[-1].output for chain in chains]
        total = sum((out for out in outputs if out is not None), torch.zeros_like(before))
        return is_constant_multiple(after - before, total, ALLOWED[self.model.dtype.itemsize])

    def _refusal(self, names: list[str]) -> str:
        model = self.model
        if names:
            what = f"{' or '.join(names)} cannot be proven to be the one MLP of {self.name}"
        else:
            what = f"nothing in {self.name} reads the stream, or its norm, as an MLP does"
        return (
            "relations reads what layer 0's MLP makes of a word, but in "
            f"{model.name} ({model.family.name}) {what}; leave the first MLP out: mlp=False."
        )

    # ---- candidates ----

    def _chain(self, first: Call) -> tuple[Call, ...]:
        """The children from one that may begin an MLP to the one that gives a row as wide.

        Empty where it does not begin one.
        """
        has_weights = _matrices(first.module) > 0
        if not has_weights or first in self.attention or is_norm(first.module):
            return ()
        if first.input is None or not self._reads_stream(first):
            return ()
        chain = [first]
        while chain[-1].output is not None and chain[-1].output.shape != first.input.shape:
            following = self._next(chain[-1])
            if following is None:
                return ()
            chain.append(following)
        matrices = sum(_matrices(call.module) for call in chain)
        return tuple(chain) if chain[-1].output is not None and matrices > 1 else ()

    def _next(self, call: Call) -> Call | None:
        """The child that reads what another gave."""
        for other in self.children[self.children.index(call) + 1 :]:
            if _same(other.input, call.output) and not is_norm(other.module):
                return other
        return None

    def _norm(self, call: Call) -> Call | None:
        """The norm whose output a child reads."""
        before = self.norms[: sum(self.number[id(n)] < self.number[id(call)] for n in self.norms)]
        return next((norm for norm in reversed(before) if _same(norm.output, call.input)), None)

    def _reads_stream(self, call: Call) -> bool:
        """Does it read a norm's output, or the stream with or without what attention adds?"""
        if self._norm(call) is not None:
            return True
        stream = None if self.whole is None else self.whole.input
        if stream is None or call.input is None or stream.shape != call.input.shape:
            return False
        if torch.equal(stream, call.input):
            return True
        writes = [write.output for write in (*self.attention, *self.norms)]
        allowed = ALLOWED[self.model.dtype.itemsize]
        return any(
            off(call.input, stream + write) <= allowed
            for write in writes
            if write is not None and write.shape == stream.shape
        )

    def _is_behind_attention(self, call: Call) -> bool:
        last = max((self.children.index(each) for each in self.attention), default=-1)
        return self.children.index(call) > last

    # ---- the proof ----

    def _is_proven(self, chain: tuple[Call, ...]) -> bool:
        """Does each row, by itself and in another order, give what it gave in the model?"""
        read, gave, last = chain[0].input, chain[-1].output, chain[-1]
        assert read is not None and gave is not None  # chains are made of such
        if weights.adds_residual(last.module):
            if last.second is None or last.second.shape != gave.shape:
                return False
            gave = gave - last.second
        rows = read.flip(0).to(self.model.device)
        try:
            again = weights.through([call.module for call in chain], rows)
        except Exception:  # a child that takes more than the rows
            return False
        if again.shape != gave.shape:
            return False
        return off(gave, again.flip(0).cpu()) <= ALLOWED[self.model.dtype.itemsize]


def _matrices(module: nn.Module) -> int:
    """How many weights of two dimensions or more it has: an MLP has two at least."""
    return sum(parameter.dim() > 1 for parameter in module.parameters())


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    """Are they equal, and more than zeros?"""
    if a is None or b is None or a.numel() != b.numel() or a.shape[-1] != b.shape[-1]:
        return False
    return torch.equal(a.flatten(), b.flatten()) and bool(a.any())

"""One layer's attention: where its output projection is, and how its heads lie in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torch import Tensor, nn

from headwidget.models.encoder_decoder import Section
from headwidget.models.weights import linear_weight

if TYPE_CHECKING:
    from headwidget.models.value_paths import ValuePath

Kind = Literal["sinks", "gated", "latent", "shared"]
"""What is special about a layer's heads: one more place to attend to than tokens; a gate on
their output; values made in two steps; values of another layer."""


@dataclass(eq=False)
class Layer:
    """One layer's attention: its place in the model and its modules."""

    index: int
    """Its number among the model's blocks; of an encoder-decoder model, among all rows."""
    block: nn.Module
    attention: nn.Module
    projection: nn.Module
    post_norm: nn.Module | None
    name: str
    """The projection's full name, for messages."""
    heads: int
    head_dim: int
    inside: bool
    """Is the projection part of the attention module, whose output is then projected?"""
    turn: int = 0
    """Where layers share their modules (ALBERT): which call of them in a forward it is."""
    turns: int = 1
    """How often the modules are called in a forward."""
    factor: float = 1.0
    """What the model multiplies the layer's write by, on its way to the logits."""
    section: Section = ""
    """Which stack of an encoder-decoder model it belongs to."""
    kind: str = ""
    """What sort of attention it is, as the configuration names it ("sliding_attention")."""
    value_path: ValuePath | None = None
    """How values are made, where no table says it and :func:`value_search.find` found it."""

    @property
    def plain(self) -> bool:
        """Is the projection just its weight? An adapter or a quantiser makes it more."""
        return self._weight() is not None

    def w_o(self) -> Tensor:
        """W_O by head, (head, head_dim, width); a view of the live weight."""
        weight = self._weight()
        if weight is None:
            raise TypeError(
                f"{self.name} is a {type(self.projection).__name__} whose weight cannot be read as "
                "plain numbers (quantised, adapted, or offloaded to disk?); load the model whole, "
                "unquantised and merged (peft: merge_and_unload()), or use method='gradient' or "
                "'ablation', which run the layer itself."
            )
        return weight.reshape(self.heads, self.head_dim, -1)

    def without(self, head: int, lost: Tensor, z: Tensor, attended: Tensor) -> Tensor:
        """The attention module's output once ``lost`` is taken off a head's output.

        ``lost`` is (batch, seq, head_dim), ``z`` all heads' outputs (batch, seq, heads *
        head_dim), ``attended`` the attention module's output (batch, seq, width). The head's
        rows of W_O are used where they can be read, else the whole projection.
        """
        rows = slice(head * self.head_dim, (head + 1) * self.head_dim)
        weight = self._weight()
        if self.inside and weight is not None:
            return attended - lost @ weight[rows]
        changed = z.clone()
        changed[..., rows] -= lost
        if not self.inside:
            return changed
        difference: Tensor = self.projection(changed) - self.projection(z)
        return attended + difference

    def _weight(self) -> Tensor | None:
        """W_O, (heads * head_dim, width); None where it cannot be read."""
        weight = linear_weight(self.projection)
        if weight is None or weight.shape[0] != self.heads * self.head_dim:
            return None
        return weight

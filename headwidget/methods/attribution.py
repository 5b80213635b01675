"""attribution: what each head writes straight towards the answer's logit.

The norms on its way keep the scale that they have at this prompt.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwidget.models import Layer, Model, hooks, straight, weights
from headwidget.models.foreign import is_hooked_itself
from headwidget.models.norms import FrozenNorm
from headwidget.models.refusals import refuse_classifier, refuse_encoder_decoder
from headwidget.scoring.batch import Batch, batches, correct, forward
from headwidget.scoring.contract import Chunk, Job, Method, land


@dataclass(frozen=True)
class Attribution:
    """Options of ``method="attribution"``: none."""


def check(model: Model) -> None:
    """Attribution needs a straight way from a head to the logits, and readable weights."""
    why = "follows what every head writes straight to the logits"
    refuse_encoder_decoder(model, "attribution", why)
    refuse_classifier(model, "attribution", why)
    if model.encoder and not model.family.table:
        raise ValueError(
            f"attribution follows what a head writes straight to the logits, but {model.name} "
            f"({model.family.name}) fills in masked tokens through a head of its own, or norms "
            "its stream after every layer, so there is no such straight way; use "
            "method='gradient' or 'ablation'."
        )
    if not model.family.table:
        straight.find(model)
    if model.final_norm is None:
        raise ValueError(
            f"attribution follows what a head writes straight to the logits, but {model.name} "
            f"({model.family.name}) normalises its residual stream after every layer, so there "
            "is no such straight way; use method='gradient' or 'ablation'."
        )
    for module in (model.unembedding, model.final_norm):
        if any(p.is_meta for p in module.parameters()):
            raise ValueError(
                f"attribution reads the weights of {type(module).__name__}, which are "
                "offloaded; use method='gradient' or 'ablation'."
            )
    weights.unembedding(model)
    for layer in model.layers:
        layer.w_o()
    if name := _hook_on_the_way(model):
        raise ValueError(
            f"attribution follows what a head writes straight to the logits, but {name} carries a "
            "hook that is not headwidget's and may change it on that way; remove the hook, or use "
            "method='gradient' or 'ablation', which run it."
        )


def _hook_on_the_way(model: Model) -> str | None:
    """The name of a module between heads and logits that has a hook of the user's own."""
    passed = {id(model.unembedding), id(model.final_norm)}
    for layer in model.layers:
        passed |= {id(m) for m in (layer.projection, layer.attention, layer.post_norm)}
    inner = {id(part) for block in model.blocks for part in block.modules()}
    inner -= {id(block) for block in model.blocks}
    for name, module in model.module.named_modules():
        holds_blocks = id(module) not in inner and any(
            part is model.blocks[0] for part in module.modules()
        )
        is_block = any(module is block for block in model.blocks)
        if (id(module) in passed or is_block or holds_blocks) and is_hooked_itself(module):
            return name or "the model"
    return None


def norms(model: Model) -> tuple[FrozenNorm, list[FrozenNorm | None]]:
    """The final norm, and the norm behind each layer's W_O where there is one.

    Reading a norm calls it, so the model's lock is held: hooks of others must not see it.
    """
    assert model.final_norm is not None  # checked
    like = model.layers[0].w_o()[0, 0].detach()  # (width,)
    with model.lock:
        behind_w_o = [
            FrozenNorm.of(layer.post_norm, like) if layer.post_norm is not None else None
            for layer in model.layers
        ]
        return FrozenNorm.of(model.final_norm, like), behind_w_o


def run(job: Job) -> Iterator[Chunk]:
    """A chunk for every batch."""
    model, task = job.model, job.task
    final_norm, post_norms = norms(model)
    unembedding = weights.unembedding(model)
    mean_logit = average(model)
    for batch in batches(task.examples, model, job.batch_size, job.portions):
        with hooks.scoring(model):
            outputs = HeadOutputs(model, batch)
            logits = outputs.run()
            towards = _direction(unembedding, mean_logit, batch)  # (batch, k, width)
            direction = final_norm.back(towards, outputs.final)
            rows = [
                outputs.along(row, direction, post_norm).to(model.device)
                for row, post_norm in enumerate(post_norms)
            ]
            values = torch.stack(rows, dim=1)  # (batch, layer, head)
            chunk = land(task.name, batch.runs, slice(None), values, correct(logits, batch))
        yield chunk


def average(model: Model) -> Tensor:
    """The direction of the mean logit, (width,)."""
    return weights.unembedding(model).mean(0, dtype=torch.float32)


class HeadOutputs:
    """One forward's z of every head and what the norms saw, at the answer's positions only."""

    def __init__(self, model: Model, batch: Batch) -> None:
        self.model, self.batch = model, batch
        self.z: list[Tensor] = []  # (batch, k, head, dim), a layer each
        self.written: dict[int, Tensor] = {}
        # by row: W_O's output where a norm follows it, (batch, k, width)
        self.final = torch.empty(0)  # the residual stream before the final norm, (batch, k, width)

    def run(self) -> Tensor:
        """The forward; its logits where the answer is read."""
        assert self.model.final_norm is not None
        watches = [
            hooks.read(self.model, lambda _, z: self.z.append(self._here(z))),
            hooks.watch(self.model.final_norm, self._see_final),
        ]
        for row, layer in enumerate(self.model.layers):
            if layer.post_norm is not None:
                see = functools.partial(self._see_written, row)
                watches.append(hooks.watch(layer.projection, see))
        with hooks.together(*watches):
            logits = forward(self.model, self.batch)
        if len(self.z) != len(self.model.layers):
            raise ValueError(
                f"{self.model.name} runs its layers more than once in a forward, so there is no "
                "single straight way from a head to the logits; use gradient or ablation."
            )
        return logits

    def along(self, row: int, direction: Tensor, post: FrozenNorm | None) -> Tensor:
        """How much each head of a layer writes along ``direction``, (batch, head).

        ``direction`` is (batch, k, width); the sum is over the answer's tokens.
        """
        layer: Layer = self.model.layers[row]
        z = self.z[row].float()
        direction = direction.to(z.device)
        if post is not None:
            direction = post.back(direction, self.written[row])
        direction = direction * layer.factor
        read = torch.einsum("bkw,hdw->bkhd", direction, layer.w_o().detach().float())
        return (z * read).sum((1, 3))

    def _see_written(self, row: int, args: Any, kwargs: Any, out: Any) -> None:
        self.written[row] = self._here(out)

    def _see_final(self, args: Any, kwargs: Any, out: Any) -> None:
        self.final = self._here(args[0])

    def _here(self, hidden: Tensor) -> Tensor:
        return hooks.take_positions(hidden, self.batch.at)


def _direction(unembedding: Tensor, average: Tensor, batch: Batch) -> Tensor:
    """The direction in which the metric grows, (batch, k, width).

    With a foil, the unembedding of answer minus foil at the token where they part; without
    one, of answer minus the mean logit at every token.
    """
    where = unembedding.device
    answer, foil = batch.answer.to(where), batch.foil.to(where)
    counts, parts = batch.counts.to(where).float(), batch.parts.to(where).float()  # (batch, k)
    answer_column = unembedding.detach()[answer].float()  # (batch, k, width)
    foil_column = unembedding.detach()[foil].float()
    against = parts[..., None] * foil_column + (1 - parts[..., None]) * average
    has_foil = parts.sum(-1, keepdim=True)
    weight = parts * has_foil + counts * (1 - has_foil)
    return (answer_column - against) * weight[..., None]


METHOD = Method(
    "attribution",
    run,
    Attribution,
    signed=True,
    skips_done=True,
    check=check,
    about="How much the head writes straight towards the answer's logit; positive towards it.",
    explained=(
        "What the head writes where the answer is predicted goes through its output matrix and the "
        "final norm (with the scale that the norm has on this prompt) onto the unembedding of the "
        "answer, minus that of the wrong answer, or minus the mean of all tokens without one.",
        "The score is in logits: what the head itself adds to the answer's lead.",
        "What later layers make of the head's output does not count, so a head of an early layer "
        "may score near 0 and yet be needed. It costs about one forward pass.",
    ),
    paper=("Elhage et al. 2021", "https://transformer-circuits.pub/2021/framework/index.html"),
)

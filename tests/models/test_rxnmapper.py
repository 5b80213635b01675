"""A real ALBERT: its layers share one block, and one of its heads maps atoms to atoms."""

from __future__ import annotations

import numpy as np
import torch

import headwidget as hw
from headwidget.models import attention
from tests.support import rxnmapper
from tests.support.plain import ablation_by_loop

LAYER, HEAD = 10, 5
"""The head that the package's own core.py names as the one that maps atoms."""
REACTIONS = {  # by reaction: for each atom of the product, the number of its atom before
    "CC(=O)O.OCC>>CC(=O)OCC": (0, 1, 2, 4, 5, 6),
    "CC(=O)Cl.NCC>>CC(=O)NCC": (0, 1, 2, 4, 5, 6),
    "CCBr.OC>>CCOC": (0, 1, 3, 4),
    "CCC=O.NC>>CCCNC": (0, 1, 2, 4, 5),
}


def mapped(weights: torch.Tensor, reaction: str, truth: tuple[int, ...]) -> list[bool]:
    """For each atom of the product: does the head look most at its atom before?

    ``weights`` is (query, key), without the special tokens.
    """
    pieces = rxnmapper.pieces(reaction)
    arrow = pieces.index(">>")
    atoms = [i for i, piece in enumerate(pieces) if piece.isalpha()]
    before, after = [i for i in atoms if i < arrow], [i for i in atoms if i > arrow]
    hits = []
    for atom, expected in zip(after, truth, strict=True):
        both = weights[atom, before] + weights[before, atom]  # as rxnmapper does
        hits.append(int(both.argmax()) == expected)
    return hits


def test_attention_weights_show_the_head_that_maps_atoms() -> None:
    model = rxnmapper.model()
    assert model.shape == (12, 8) and not model.family.table
    shares = np.zeros(model.shape)
    for row in range(12):
        hits: list[list[bool]] = [[] for _ in range(8)]
        for reaction, truth in REACTIONS.items():
            weights = attention.weights(model, rxnmapper.ids(reaction), row)[0, :, 1:-1, 1:-1]
            for head in range(8):
                hits[head] += mapped(weights[head], reaction, truth)
        shares[row] = [np.mean(head) for head in hits]
    others = np.delete(shares[LAYER], HEAD)
    assert shares[LAYER, HEAD] > 0.7, shares.round(2)
    assert shares[LAYER, HEAD] > others.max() + 0.2, shares.round(2)


def test_scoring_runs_on_the_shared_block() -> None:
    model = rxnmapper.model()
    reaction = hw.Task("atoms", [("C <mask> O".replace("<mask>", "[MASK]"), "C")])
    ours = hw.score(model, reaction, "ablation", progress=False).values("atoms")
    expected = ablation_by_loop(model, reaction)
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)
    assert np.ptp(expected[0], axis=0).max() > 0.01, "layers must differ"

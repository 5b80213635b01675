"""A real BERT that knows reactions: scores equal plain loops, weights know their domain."""

from __future__ import annotations

import numpy as np
import torch

import headwidget as hw
from tests.support import identities, rxnfp

REACTIONS = (
    "CC(=O)O.OCC>>CC(=O)OCC",
    "CC(=O)Cl.NCC>>CC(=O)NCC",
    "O=C(O)c1ccccc1.OCC>>CCOC(=O)c1ccccc1",
)
TASK = hw.Task(
    "reactions",
    [("CC(=O)O.OCC>>CC(=O)[MASK]CC", "O", "N"), ("CC(=O)Cl.[MASK]CC>>CC(=O)NCC", "N", "O")],
)


def hits(reaction: str) -> list[bool]:
    """For each piece of the reaction: is it the model's first guess where it is masked?"""
    ids, model = rxnfp.ids(reaction), rxnfp.model()
    inner = range(1, ids.shape[1] - 1)
    masked = ids.repeat(len(inner), 1)
    masked[range(len(inner)), list(inner)] = model.tokenizer.mask_token_id
    with torch.no_grad():
        guesses = model.module(input_ids=masked).logits.argmax(-1)
    return [bool(guesses[row, at] == ids[0, at]) for row, at in enumerate(inner)]


def test_the_model_knows_reactions() -> None:
    model = rxnfp.model()
    assert model.shape == (12, 4) and model.family.table and model.encoder
    share = np.mean([hit for reaction in REACTIONS for hit in hits(reaction)])
    assert share > 0.7, "always the most frequent piece, C, hits a third"


def test_scores_are_those_of_plain_loops() -> None:
    identities.scores_are_those_of_plain_loops(rxnfp.model(), TASK)


def test_gates_of_one_change_nothing_and_contributions_sum() -> None:
    ids = rxnfp.ids(REACTIONS[-1])
    identities.gates_of_one_change_nothing(rxnfp.model(), ids)
    identities.contributions_sum_to_the_output(rxnfp.model(), ids)

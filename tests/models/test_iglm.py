"""A real GPT-2 that knows antibodies: scores equal plain loops, weights know their domain."""

from __future__ import annotations

import torch

import headwidget as hw
from tests.support import identities, iglm

CHAIN = (  # the variable heavy chain of trastuzumab
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQ"
    "MNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS"
)
HUMAN, LIGHT = "[HEAVY][HUMAN]", "[LIGHT][HUMAN]"
TASK = hw.Task(
    "antibody",
    [(HUMAN + CHAIN[:21], CHAIN[21], "K"), (HUMAN + CHAIN[:34], CHAIN[34:36], "KK")],
)


def mean_log_p(start: str, residues: str) -> float:
    """The mean log p of a residue behind those before it."""
    ids = iglm.ids(start + residues)
    with torch.no_grad():
        log_p = iglm.model().module(input_ids=ids).logits[0].log_softmax(-1)
    return float(log_p[1:-1].gather(1, ids[0, 2:, None]).mean())


def test_the_model_knows_antibodies() -> None:
    model = iglm.model()
    assert model.shape == (4, 8) and model.family.table
    order = torch.randperm(len(CHAIN), generator=torch.Generator().manual_seed(0))
    shuffled = "".join(CHAIN[i] for i in order.tolist())
    human = mean_log_p(HUMAN, CHAIN)
    assert human > -1.5, "a guess among 20 residues has -3.0"
    assert human > mean_log_p(LIGHT, CHAIN) + 0.5, "it is a heavy chain"
    assert human > mean_log_p(HUMAN, shuffled) + 1.5


def test_scores_are_those_of_plain_loops() -> None:
    identities.scores_are_those_of_plain_loops(iglm.model(), TASK)


def test_gates_of_one_change_nothing_and_contributions_sum() -> None:
    ids = iglm.ids(HUMAN + CHAIN)
    identities.gates_of_one_change_nothing(iglm.model(), ids)
    identities.contributions_sum_to_the_output(iglm.model(), ids)

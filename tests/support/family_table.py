"""What headwidget makes of a tiny model of a family: exact, refused, or wrong.

The projections are found here by other means than in headwidget (by their names), and every
number is compared with plain forwards that share no code with the engine.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import torch

import headwidget as hw
from headwidget.models import tracing
from headwidget.scoring.encode import encode
from tests.support import every_family, tiny
from tests.support.plain import ablation_by_loop, log_p
from tests.support.small_configs import Unbuildable

PROMPTS = hw.Task("letters", [("the cat", " m"), ("ab", "cd")])
MASKED = hw.Task("letters", [("the <mask> sat", "c"), ("a<mask>c", "b")])
_ATTENTION = re.compile(r"attn|[aA]ttention|mixer|temporal_block|self_|shared_transf")
_PROJECTION = re.compile(
    r"\.(o_proj|out_proj|c_proj|dense|wo|o|out_lin|linear_out|attention_out|w_o|Wo|to_out|output_proj|output|o_lin"
    r"|out_proj\.linear|o_proj\.linear)$"
)
STEPS = (1e-3, 1e-4, 1e-5)
"""The smaller ones where the larger crosses a kink, such as a router's choice."""


@dataclass(frozen=True)
class Row:
    """One family in the table."""

    family: str
    outcome: Literal["exact", "refused", "not built", "wrong"]
    text: str = ""
    """Why not, or what is left out."""


def examine(family: str, kind: str = "causal") -> Row:
    """Build, load and score a tiny model of the family."""
    try:
        module = _runnable(family, kind)
    except Unbuildable as error:
        return Row(family, "not built", str(error))
    try:
        model = hw.load(module, tiny.tokenizer())
    except (ValueError, RuntimeError) as error:
        return Row(family, "refused", str(error))
    try:
        slopes = _slopes(model)
    except RuntimeError as error:
        if not str(error).endswith("."):
            raise
        slopes, note = "", ", `gradient` refused"
    else:
        note = ""
    faults = [fault for fault in (_names(model), _ablation(model), slopes) if fault]
    if faults:
        return Row(family, "wrong", "; ".join(faults))
    return Row(family, "exact", note)


def _runnable(family: str, kind: str) -> Any:
    """The model in float64, or in float32 where its own code needs that, or does not run at all."""
    module = every_family.build(family, kind)
    if hasattr(module, "set_experts_implementation"):
        module.set_experts_implementation("eager")  # the others have no float64
    ids = torch.tensor([[70, 71, 72]])
    takes_two = "decoder_input_ids" in inspect.signature(module.forward).parameters
    try:
        with torch.no_grad():
            module = module.double()
            decoded = {"decoder_input_ids": ids} if takes_two else {}
            module(input_ids=ids, **decoded, **tracing.no_cache(module))
    except Exception:
        return module.float()
    return module


def _task(model: hw.Model) -> hw.Task:
    return MASKED if model.encoder else PROMPTS


def _names(model: hw.Model) -> str:
    """Are the projections those that their names tell?"""
    wrong = [
        layer.name
        for layer in model.layers
        if not (_PROJECTION.search(layer.name) and _ATTENTION.search(layer.name))
    ]
    return f"{wrong[0]} is no output projection by its name" if wrong else ""


def _ablation(model: hw.Model) -> str:
    """Ablation against one forward per head."""
    task = _task(model)
    ours = hw.score(model, task, "ablation", progress=False).values("letters")
    expected = ablation_by_loop(model, task)
    off = np.abs(ours - expected).max() / np.abs(expected).max()
    return "" if off < 1e-3 else f"ablation is {off:.1%} off"


def _slopes(model: hw.Model) -> str:
    """Gradients against a small step of all gates in a random direction, a prompt each."""
    task = _task(model)
    ours = hw.score(model, task, "gradient", progress=False).values("letters")
    exact = model.dtype == torch.float64
    direction = np.random.default_rng(0).choice([-1.0, 1.0], model.shape)
    for example, slopes in zip(encode(task, model).examples, ours):
        offs = []
        for step in STEPS if exact else (1e-2, 1e-3):
            ends = [_moved(model, example, 1 + sign * step * direction) for sign in (1, -1)]
            change, foretold = (ends[0] - ends[1]) / (2 * step), float((slopes * direction).sum())
            offs.append(abs(change - foretold) / np.linalg.norm(slopes))
            if offs[-1] < 1e-2:
                break
        else:
            return f"slopes are {min(offs):.1%} off"
    return ""


def _moved(model: hw.Model, example: Any, gates: Any) -> float:
    def changed(row: int) -> Any:
        factors = torch.tensor(gates[row])[:, None]
        return lambda z, _: z * factors.to(z.dtype)

    return log_p(model, example, {row: changed(row) for row in range(len(model.layers))})


# ---- the table in docs/models.md ----

BEGIN, END = "<!-- made by make models: -->", "<!-- end -->"
TITLES = {
    "causal": "Decoders (AutoModelForCausalLM)",
    "masked": "Encoders (AutoModelForMaskedLM)",
    "encoder-decoder": "Encoder-decoder models (AutoModelForSeq2SeqLM)",
    "image-text": "Image-text models (AutoModelForImageTextToText), text side",
    "image-class": "Classifiers of images (AutoModelForImageClassification)",
    "audio-class": "Classifiers of sounds (AutoModelForAudioClassification)",
}


def section(kind: str, rows: list[Row]) -> str:
    """A kind's families as Markdown: the exact ones in a line, the others with their reasons."""
    exact = [f"{row.family}{row.text}" for row in rows if row.outcome == "exact"]
    others = [row for row in rows if row.outcome != "exact"]
    lines = [
        f"### {TITLES[kind]}",
        "",
        f"{len(exact)} of {len(rows)} are exact: {'; '.join(exact)}.",
        "",
        "| family | | why |",
        "|---|---|---|",
        *(f"| {row.family} | {row.outcome} | {_reason(row.text)} |" for row in others),
    ]
    return "\n".join(lines)


def peer_section(verdicts: dict[str, str | None]) -> str:
    """What TransformerLens says of the same weights, as Markdown."""
    agree = [family for family, verdict in verdicts.items() if verdict == ""]
    differ = {family: verdict for family, verdict in verdicts.items() if verdict}
    lines = [
        "### TransformerLens on the same weights",
        "",
        f"TransformerLens {version('transformer-lens')} (`TransformerBridge`) gives the same z of "
        f"every head and the same log p with a head off in {len(agree)} families of decoders: "
        f"{'; '.join(agree)}.",
    ]
    if differ:
        lines += ["", "| family | where it differs or fails |", "|---|---|"]
        lines += [f"| {family} | {_reason(why)} |" for family, why in differ.items()]
    return "\n".join(lines)


def _reason(text: str) -> str:
    """The part of a sentence that a reader of the table needs."""
    text = re.split(r" \w+ is not scored, as", text)[0].replace("|", "/")
    text = re.sub("is of a family that .* looked for: a", "is not examined: a", text)
    return text if len(text) < 280 else f"{text[:277]}…"


def listed(page: str, kind: str) -> set[str]:
    """The families that the page says are exact."""
    _, _, rest = page.partition(f"### {TITLES[kind]}")
    _, _, names = rest.split("\n\n")[1].partition(" are exact: ")
    return {name.split(",")[0].strip() for name in names.rstrip(".").split(";")}

"""One check a method: how headwidget is asked, and how its answer is held to the definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import headwidget as hw
from headwidget.methods import patterns, probe
from headwidget.models.families import Family
from headwidget.scoring.encode import Encoded, encode
from tests.support import plain_gating, plain_weights
from tests.support.compositions import Composition, relation
from tests.support.ingredients import Grain, Held
from tests.support.plain_loops import Plain

TOLERANCE: dict[Grain, tuple[float, float]] = {
    "double": (2e-4, 2e-4),  # norms, softmax and means are in float32 there too
    "single": (1e-3, 1e-3),  # log p of size 10 has seven digits; a few hundred additions
    "half": (0.15, 0.1),  # logits of size 4 have two to three digits
    "stairs": (0.3, 0.2),  # activations rounded to 8 bits
}
"""How far a score may be from its definition: absolute, and relative to the largest score."""

UPDATES, LR, STRENGTH = 2, 0.1, 0.1


class Fault(AssertionError):
    """The property does not hold."""


# ---- one check a method ----


@dataclass(eq=False)
class Asked:
    """What is asked of a model: tasks, and a model as headwidget has loaded it."""

    composition: Composition
    held: Held
    plain: Plain
    tasks: list[hw.Task]

    def load(self) -> hw.Model:
        return hw.load(self.held.module, self.held.tokenizer)

    def score(self, tasks: Any, method: str, **options: Any) -> hw.HeadScores:
        size = self.composition.batch_size
        return hw.score(self.load(), tasks, method, batch_size=size, progress=False, **options)

    def examples(self, task: hw.Task) -> tuple[Encoded, ...]:
        """Token ids and positions; the model is asked nothing but its kind and sizes."""
        return encode(task, _Sizes(self.held)).examples  # type: ignore[arg-type]

    def close(self, values: Any, expected: np.ndarray, what: str, slack: Any = 0.0) -> None:
        """Compare a result with its definition; ``slack`` is the definition's own uncertainty."""
        absolute, relative = TOLERANCE[self.held.grain]
        values = np.asarray(values, float)
        if values.shape != expected.shape:
            raise Fault(f"{what} has shape {values.shape}, by definition {expected.shape}")
        allowed = absolute + relative * np.abs(expected).max(initial=0.0) + 2 * slack
        off = np.abs(values - expected)
        if not (off <= allowed).all():
            at = np.unravel_index(np.argmax(np.nan_to_num(off - allowed, nan=np.inf)), off.shape)
            raise Fault(
                f"{what}{[int(i) for i in at]} is {values[at]:.5g}, by definition "
                f"{expected[at]:.5g}; {np.mean(off > allowed):.0%} of the numbers are off"
            )


class _Sizes:
    """What the encoder of prompts asks of a model."""

    def __init__(self, held: Held) -> None:
        self.tokenizer, self.encoder = held.tokenizer, held.encoder
        self.vocabulary = held.base.config.get_text_config().vocab_size
        self.context, self.name, self.encoder_decoder = None, held.family, False
        self.classifier, self.processor, self.readable = False, held.tokenizer, self.vocabulary
        self.config, self.family = held.base.config, Family(held.family, "")


Ask = Callable[[Asked], Any]
Compare = Callable[[Asked, Any], None]
CHECKS: dict[str, tuple[Ask, Compare]] = {}
"""By name: how headwidget is asked, and how its answer is compared."""


def _check(name: str, ask: Ask) -> Callable[[Compare], Compare]:
    def register(compare: Compare) -> Compare:
        CHECKS[name] = (ask, compare)
        return compare

    return register


def _per_task(asked: Asked, scores: hw.HeadScores, define: Callable[..., Any]) -> None:
    for task in asked.tasks:
        expected = define(asked.examples(task))
        slack: Any = 0.0
        if isinstance(expected, tuple):
            expected, slack = expected
        asked.close(scores.values(task.name), expected, task.name, slack)


@_check("gradient", lambda asked: asked.score(asked.tasks, "gradient"))
def _gradient(asked: Asked, scores: hw.HeadScores) -> None:
    ingredients = asked.composition.ingredients
    cuts = any(text.startswith("stop") or text.endswith(":detached") for text in ingredients)
    if cuts and asked.held.grain in ("half", "stairs"):
        return  # docs/trust.md, "What is not seen": rounding hides a cut of a part
    _per_task(asked, scores, asked.plain.gradient)


def _ablation(replace: str, where: str) -> None:
    def ask(asked: Asked) -> Any:
        return asked.score(asked.tasks, "ablation", replace=replace, where=where)

    @_check(f"ablation-{replace}-{where}", ask)
    def compare(asked: Asked, scores: hw.HeadScores) -> None:
        _per_task(asked, scores, lambda e: asked.plain.ablation(e, replace, where))


for _where in ("all", "last"):
    _ablation("zero", _where)
    _ablation("mean", _where)


@_check("attribution", lambda asked: asked.score(asked.tasks, "attribution"))
def _attribution(asked: Asked, scores: hw.HeadScores) -> None:
    try:
        _per_task(asked, scores, lambda e: asked.plain.attribution(e, "weights"))
    except Fault:  # hooks on the last two modules may count or not
        _per_task(asked, scores, lambda e: asked.plain.attribution(e, "calls"))


def _ask_probe(asked: Asked, features: np.ndarray | None = None) -> Any:
    """Scores with the features that they were made from; or with these features instead."""
    noted: list[Any] = []
    read = probe.read

    def noting(job: Any) -> Any:
        z, right = read(job)
        noted.append(z.detach().cpu().double().numpy())
        if features is not None:
            z = torch.tensor(features, dtype=z.dtype, device=z.device)
        return z, right

    how = {"k": 1 + asked.composition.prompts % 2, "folds": 2, "published": True, "epochs": 3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "read", noting)
        scores = asked.score(asked.tasks, "probe", units=4, hidden=8, minibatch=9, **how)
    return noted[0], scores


@_check("probe", _ask_probe)
def _probe(asked: Asked, answer: Any) -> None:
    features, scores = answer
    examples = [e for task in asked.tasks for e in asked.examples(task)]
    expected = asked.plain.features(examples, 1 + asked.composition.prompts % 2)
    asked.close(features, expected, "features")
    if asked.held.grain in ("double", "single"):  # what follows is not smooth
        _, follow = _ask_probe(asked, expected)
        for task in asked.tasks:
            asked.close(scores.values(task.name), np.asarray(follow.values(task.name)), task.name)


def _ask_gating(asked: Asked) -> Any:
    first = asked.tasks[0]
    with plain_gating.recorded() as draws:
        options = {"fits": 2, "updates": UPDATES, "lr": LR, "strength": STRENGTH}
        scores = asked.score(first, "gating", preset="quick", **options)
    return draws, scores


@_check("gating", _ask_gating)
def _gating(asked: Asked, answer: Any) -> None:
    draws, scores = answer
    examples = asked.examples(asked.tasks[0])
    gates = plain_gating.gates(asked.plain, examples, draws, UPDATES, LR, STRENGTH)
    values = np.asarray(scores.values("first"), float)
    if asked.held.grain in ("half", "stairs"):  # Adam's first step is the gradient's sign
        if np.median(np.abs(values - gates["drop"])) > LR / 2:
            raise Fault("half of the gates moved another way than by definition")
        return
    asked.close(values, gates["drop"], "facilitation")
    interference = scores.aspects["interference"].values("first")
    asked.close(interference, 1 - gates["keep"], "interference")


@_check("relations", lambda asked: asked.score(relation(), "relations"))
def _relations(asked: Asked, scores: hw.HeadScores) -> None:
    pairs = []
    for example in relation().examples:
        source, target = (_letter(asked.held, text) for text in (example.prompt, example.answer))
        pairs.append((source, target))
    expected, unsure = plain_weights.hits(asked.plain, pairs, k=10)
    values = np.where(unsure, expected, scores.values("following"))
    asked.close(values, expected, "hits")


def _letter(held: Held, text: str) -> int:
    """The token of a letter behind a space."""
    (token,) = held.tokenizer(f" {text.strip()}", add_special_tokens=False)["input_ids"]
    return int(token)


def _ask_patterns(asked: Asked) -> Any:
    return asked.score(asked.tasks, "patterns", lengths=(4,), sequences=1)


@_check("patterns", _ask_patterns)
def _patterns(asked: Asked, scores: hw.HeadScores) -> None:
    encoder = asked.held.encoder
    options = patterns.Patterns(lengths=(4,), sequences=1)
    shown = patterns.encode(asked.tasks, asked.load(), options, 0)
    weights: dict[tuple[int, ...], Any] = {}
    for task in shown:
        expected = np.zeros((len(task.examples), *asked.plain.shape))
        for run, example in enumerate(task.examples):
            if example.ids not in weights:
                weights[example.ids] = plain_weights.attention(asked.plain, example)
            for row, head in np.ndindex(*asked.plain.shape):
                of_head = weights[example.ids][row][head]
                expected[run, row, head] = plain_weights.pattern(
                    task.name, example, of_head, encoder
                )
        asked.close(scores.values(task.name), expected, task.name)


def _random_scores(asked: Asked, model: hw.Model) -> hw.HeadScores:
    rng = np.random.default_rng(asked.composition.prompts)
    arrays = {task.name: rng.normal(size=(1, *model.shape)) for task in asked.tasks}
    layers = [layer.index for layer in model.layers]
    meta = {"weights": model.fingerprint()}
    return hw.HeadScores.from_arrays(arrays, method="mine", layers=layers, meta=meta)


def _ask_knockout(asked: Asked) -> Any:
    model = asked.load()
    scores, size = _random_scores(asked, model), asked.composition.batch_size
    options: dict[str, Any] = {"k": (1, 2), "draws": 1, "others": "none", "batch_size": size}
    effect = hw.knockout(model, scores, asked.tasks, **options, progress=False)
    return {layer.index: row for row, layer in enumerate(model.layers)}, effect.frame


@_check("knockout", _ask_knockout)
def _knockout(asked: Asked, answer: Any) -> None:
    rows, frame = answer
    for task in asked.tasks:
        for _, line in frame[frame.task == task.name].iterrows():
            gates = np.ones(asked.plain.shape)
            for layer, head in line.heads:
                gates[rows[layer], head] = 0
            _answers(asked, task, gates, line)


def _answers(asked: Asked, task: hw.Task, gates: np.ndarray, line: Any) -> None:
    expected = asked.plain.answers(asked.examples(task), gates)
    measures = ["log_probability"]
    if asked.held.grain in ("double", "single"):
        measures += ["accuracy", "beats_foil"]
    for measure in measures:
        if not np.isnan(expected[measure]) or not np.isnan(line[measure]):
            got = np.array(float(line[measure]))
            asked.close(got, np.array(expected[measure]), f"{task.name}, {measure}")


def _ask_keep_only(asked: Asked) -> Any:
    model = asked.load()
    scores, size = _random_scores(asked, model), asked.composition.batch_size
    options: dict[str, Any] = {"threshold": 0.0, "draws": 0, "batch_size": size}
    return scores, hw.keep_only(model, scores, asked.tasks, **options, progress=False)


@_check("keep_only", _ask_keep_only)
def _keep_only(asked: Asked, answer: Any) -> None:
    scores, frame = answer
    for task in asked.tasks:
        kept = np.asarray(scores.values(task.name))[0] >= 0
        for _, line in frame[frame.task == task.name].iterrows():
            gates = np.ones(kept.shape) if line.kind == "all" else kept.astype(float)
            _answers(asked, task, gates, line)

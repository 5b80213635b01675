"""Made-up scores that look like real ones: most heads do little, a few carry a task, some
carry several."""

from __future__ import annotations

import numpy as np

import headwidget as hw

COGNITIVE = (
    "Knowledge Recall",
    "Retrieval",
    "Logical Reasoning",
    "Decision-making",
    "Semantic Understanding",
    "Syntactic Understanding",
    "Inference",
    "Math Calculation",
)
CATEGORIES = {"Algorithmic": 5, "Knowledge": 5, "Linguistic": 8, "Translation": 2}


def strengths(rng: np.random.Generator, layers: int, heads: int) -> np.ndarray:
    """(layer, head): what one task needs; strongest in a band of layers."""
    depth = np.linspace(0, 1, layers)[:, None]
    band = np.exp(-(((depth - rng.uniform(0.3, 0.8)) / rng.uniform(0.1, 0.25)) ** 2))
    return np.asarray(rng.gamma(0.35, 1.0, (layers, heads)) * (0.15 + band), np.float64)


def scores(
    layers: int, heads: int, *, tasks: int = 8, runs: int = 16, signed: bool = False, seed: int = 0
) -> hw.HeadScores:
    """Tasks with runs that scatter around their strengths."""
    rng = np.random.default_rng(seed)
    values = {}
    for i in range(tasks):
        mean = strengths(rng, layers, heads)
        if signed:
            mean = mean * rng.choice([1, 1, 1, -0.6], mean.shape)
        noise = rng.normal(size=(runs, layers, heads)) * (0.05 + 0.4 * np.abs(mean))
        task_values = 0.01 * (mean + noise)
        values[COGNITIVE[i] if i < len(COGNITIVE) else f"Task {i}"] = (
            task_values if signed else np.abs(task_values)
        )
    return hw.HeadScores.from_arrays(
        values,
        method="made up",
        signed=signed,
        meta={"model": f"made-up {layers} x {heads}", "dtype": "float32", "seed": seed},
    )


def fits(
    layers: int,
    heads: int,
    *,
    tasks: tuple[str, ...] = ("Math", "Syntax"),
    runs: int = 10,
    seed: int = 0,
) -> hw.HeadScores:
    """Gates in [0, 1] of repeated fits: most closed, some open in every fit, many in some."""
    rng = np.random.default_rng(seed)
    values = {}
    for name in tasks:
        need = strengths(rng, layers, heads)
        open_ = np.clip(need / np.quantile(need, 0.97), 0, 1)
        gate = 1 / (1 + np.exp(-(rng.normal(size=(runs, layers, heads)) * 1.6 + 9 * open_ - 4)))
        values[name] = gate
    return hw.HeadScores.from_arrays(
        values, method="made-up gates", signed=False, meta={"model": f"made-up {layers} x {heads}"}
    )


def relations(layers: int, heads: int, *, runs: int = 50, seed: int = 0) -> hw.HeadScores:
    """Twenty relations in four categories, the share of pairs that hit."""
    rng = np.random.default_rng(seed)
    values, categories = {}, {}
    for category, count in CATEGORIES.items():
        for i in range(count):
            hit = np.clip(strengths(rng, layers, heads) * 0.055, 0, 0.95)
            values[f"{category.lower()} {i + 1}"] = rng.random((runs, layers, heads)) < hit
            categories[f"{category.lower()} {i + 1}"] = category
    arrays = {name: value.astype(np.float32) for name, value in values.items()}
    return hw.HeadScores.from_arrays(
        arrays,
        method="made-up relations",
        signed=False,
        categories=categories,
        meta={"model": f"made-up {layers} x {heads}"},
    )

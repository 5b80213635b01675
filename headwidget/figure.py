"""The tasks view as a matplotlib figure: for papers, for servers without a browser. Colours and range are those of ``js/scales.ts`` (golden)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headwidget import reduce

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headwidget.scores import HeadScores

DIVERGING = "08306b 1a5ba3 3f87c8 7bb1dd b9d5ea f3f2ef f8d3ad f2aa66 e07f2c b5580f 6b2f04"
_STEPS = (1, 2, 3, 6, 12, 24, 48, 96)


def colour_range(means: np.ndarray, signed: bool) -> tuple[float, float, float]:
    """(low, high, step): the top is the 99.5th percentile of ``|mean|`` rounded up to a tick; signed scores reach as far on both sides."""
    size = np.sort(np.abs(means).ravel())
    reach = float(size[min(len(size) - 1, math.floor(len(size) * 0.995))])
    step = _nice((reach or 1.0) / (3 if signed else 4))
    high = _clean(max(1, math.ceil(reach / step - 1e-6)) * step)
    low = -high if signed else _clean(math.floor(min(0.0, float(means.min())) / step + 1e-6) * step)
    return low, high, step


def figure(scores: HeadScores, columns: int = 4) -> Figure:
    """One heatmap a task, one shared colour bar whose ends carry a "+" where scores are capped."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    means = np.stack([reduce.mean(scores.values(name)) for name in scores.tasks])  # (task, layer, head)
    low, high, step = colour_range(means, scores.signed)
    colours = LinearSegmentedColormap.from_list("heads", [f"#{c}" for c in DIVERGING.split()]) if scores.signed else "viridis"
    if columns < 1:
        raise ValueError(f"a figure has 1 column or more; got {columns}.")
    across = min(columns, len(scores.tasks))
    down = math.ceil(len(scores.tasks) / across)
    layers, heads = scores.shape
    cell = min(0.16, 3.2 / max(layers, heads))  # inches
    made = Figure(figsize=(across * (heads * cell + 0.75) + 1.1, down * (layers * cell + 0.75)), layout="constrained", dpi=160)
    panels = made.subplots(down, across, squeeze=False)
    image = None
    for i, axes in enumerate(panels.ravel()):
        if i >= len(scores.tasks):
            axes.set_axis_off()
            continue
        image = axes.imshow(means[i], cmap=colours, vmin=low, vmax=high, interpolation="nearest", aspect="equal")
        axes.set_title(scores.tasks[i], fontsize=10)
        axes.set_xticks(range(0, heads, _tick(heads)))
        rows = range(0, layers, _tick(layers))
        axes.set_yticks(rows, [str(scores.layers[r]) for r in rows])
        axes.tick_params(labelsize=8, length=2)
        if i % across == 0:
            axes.set_ylabel("Layer", fontsize=9)
        if i + across >= len(scores.tasks):
            axes.set_xlabel("Head", fontsize=9)
    assert image is not None
    bar = made.colorbar(image, ax=panels.ravel().tolist(), shrink=0.85, label=f"{scores.method} (mean over runs)")
    places = [low + k * step for k in range(round((high - low) / step) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9) + (1 if f"{step:.1e}"[0:3] == "2.5" else 0))
    labels = [f"{p:.{digits}f}".replace("-", "−") for p in places]
    if means.max() > high * 1.000001:
        labels[-1] += "+"
    if means.min() < low * 1.000001:
        labels[0] += "+"
    bar.set_ticks(places, labels=labels)
    bar.ax.tick_params(labelsize=8)
    return made


def _nice(size: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least ``size``."""
    power = 10.0 ** math.floor(math.log10(size) + 1e-9)
    return _clean(next((n for n in (1, 2, 2.5, 5) if n * power >= size * 0.999999), 10) * power)


def _clean(value: float) -> float:
    """0.30000000000000004 is 0.3."""
    return float(f"{value:.12g}")


def _tick(count: int) -> int:
    return next((s for s in _STEPS if count / s <= 8.5), math.ceil(count / 4))

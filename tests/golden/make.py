"""Makes the golden fixtures that hold the Python and TypeScript twins together: python tests/golden/make.py.

The expectations of reduce.json are worked out here the slow way, from the definitions, in plain Python: a third opinion
that neither twin shares code with. wire.json is what ``wire.encode`` sends for one of the cases.
"""

from __future__ import annotations

import base64
import json
import math
import random
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Runs = list[list[list[float]]]  # [run][layer][head]


def f32(x: float) -> float:
    """The float32 nearest to x."""
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def made(seed: int, runs: int, layers: int, heads: int, low: float, high: float) -> Runs:
    rng = random.Random(seed)
    return [[[f32(round(rng.uniform(low, high), 4) + 0.0) for _ in range(heads)] for _ in range(layers)] for _ in range(runs)]


def cases() -> list[dict[str, Any]]:
    edge = made(4, 5, 3, 4, 0.0, 1.0)
    for run in edge:
        run[1][2] = f32(0.7)  # as a double, 0.7 is more than its float32: compared carelessly, this head falls below 0.7
    edge[0][0][0] = f32(0.7)
    flat = [[[f32(0.25)] * 3] * 2]
    return [
        {"name": "one run", "layers": [0, 1, 2], "values": made(1, 1, 3, 4, 0.0, 1.0)},
        {"name": "five runs, signed", "layers": [0, 1, 2, 3], "values": made(2, 5, 4, 3, -1.0, 1.0)},
        {"name": "six runs, layers with gaps", "layers": [3, 7, 11], "values": made(3, 6, 3, 4, -0.002, 0.004)},
        {"name": "a threshold that is a score", "layers": [0, 1, 2], "values": edge},
        {"name": "a hundred runs", "layers": [0, 1], "values": made(5, 100, 2, 3, -1.0, 2.0)},
        {"name": "a hundred and one runs", "layers": [0, 1], "values": made(6, 101, 2, 2, 0.0, 1.0)},
        {"name": "all heads alike", "layers": [0, 1], "values": flat},
    ]


def needed(agreement: float, runs: int) -> int:
    """The smallest k >= 1 with k / runs >= agreement, allowing for the last digits of a double."""
    return next(k for k in range(1, runs + 1) if k >= agreement * runs - 1e-9)


def kept(runs: int) -> list[int]:
    """All ranks of up to 33 runs; of more, the 33 nearest to evenly spread, halves upwards."""
    return list(range(runs)) if runs <= 33 else [math.floor(i * (runs - 1) / 32 + 0.5) for i in range(33)]


def expected(values: Runs) -> dict[str, Any]:
    runs, layers, heads = len(values), len(values[0]), len(values[0][0])
    cells = [sorted(values[r][y][x] for r in range(runs)) for y in range(layers) for x in range(heads)]
    mean = [f32(math.fsum(c) / runs) for c in cells]
    size = sorted((abs(m) for m in mean), reverse=True)
    half = runs // 2
    ranks = kept(runs)
    agreements = {}
    for agreement in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
        k = needed(agreement, runs)
        stand_in = max(r for r in ranks if r <= runs - k)
        agreements[str(agreement)] = {
            "runs_needed": k,
            "exact": [c[runs - k] for c in cells],
            "kept_index": ranks.index(stand_in),
            "kept": [c[stand_in] for c in cells],
        }
    thresholds = {}
    for threshold in (-0.5, 0.0, 0.001, 0.5, 0.7, 5.0):
        edge = f32(threshold)
        thresholds[str(threshold)] = {
            "mean": [int(m >= edge) for m in mean],
            "size": [int(abs(m) >= edge) for m in mean],
            "always": [int(c[0] >= edge) for c in cells],
            "any": [int(c[-1] >= edge) for c in cells],
            "half": [int(c[runs - needed(0.5, runs)] >= edge) for c in cells],
        }
    total = math.fsum(size)
    return {
        "ranks": ranks,
        "mean": mean,
        "median": [f32((c[half] + c[(runs - 1) // 2]) / 2) for c in cells],
        "always": [c[0] for c in cells],
        "any": [c[-1] for c in cells],
        "share": [f32(abs(m) / total) if total else 0.0 for m in mean],
        "elbow": knee(size),
        "top": [list(divmod(i, heads)) for i in sorted(range(len(mean)), key=lambda i: (-mean[i], i))[:4]],
        "agreement": agreements,
        "threshold": thresholds,
    }


def knee(size: list[float]) -> float:
    """The value farthest below the straight line from the largest (at 0) to the smallest (at 1)."""
    if len(size) < 3 or size[0] == size[-1]:
        return size[0]
    last = len(size) - 1
    below = [1 - i / last - (v - size[-1]) / (size[0] - size[-1]) for i, v in enumerate(size)]
    return size[below.index(max(below))]


def packed(column: list[float], ranks: list[int]) -> list[float]:
    """What the wire keeps of one head's sorted runs, in exact fractions: between least and most whole 65535ths of the range, rounded down."""
    least, most = Fraction(column[0]), Fraction(column[-1])
    inner = [math.floor((Fraction(column[rank]) - least) / (most - least) * 65535) if most > least else 65535 for rank in ranks[1:-1]]
    return [column[0], *(f32(float(least + steps * (most - least) / 65535)) for steps in inner), column[-1]]


def wire_case() -> dict[str, Any]:
    from headwidget import wire
    from headwidget.scores import HeadScores

    by_name = {case["name"]: case for case in cases()}
    tied = made(8, 40, 3, 4, 0, 1)
    for i, run in enumerate(tied):
        run[0][0] = f32(0.7)  # all runs alike
        run[0][1] = f32(min(run[0][1], 0.25))  # most runs at the maximum: they stay there
        run[0][2] = f32((1 + i) * 1e-45)  # the smallest numbers there are
        run[0][3] = f32((i - 20) * 1.5e37)  # a range of 6e38, beyond float32
        run[1][1] = f32(1e-30 if i else -1e38)  # a maximum that least + range, in double, does not meet
        run[1][0] = f32(1 + (i % 3) * 2**-23)  # neighbours in float32
    values = {"<b>syntax</b>": made(7, 3, 3, 4, -1.0, 1.0), "math 🧮": by_name["six runs, layers with gaps"]["values"], "long": tied}
    known = {"long": {"accuracy": 0.95, "beats_foil": 0.999, "dropped": [{"why": "too long", "count": 3}]}}
    given = {"method": "mine", "layers": [3, 7, 11], "categories": {"long": "memory"}, "meta": {"model": "tiny", "axes": ["Block", "Head"], "tasks": known}}
    header, buffer = wire.encode(HeadScores.from_arrays(values, **given))
    tasks = []
    for runs in values.values():
        full = expected(runs)
        columns = [sorted(r[y][x] for r in runs) for y in range(3) for x in range(4)]
        heads = [packed(c, full["ranks"]) if len(runs) > 33 else c for c in columns]
        tasks.append({"mean": full["mean"], "order": [list(one) for one in zip(*heads)]})
    return {"values": values, "given": given, "header": header, "buffer": base64.b64encode(buffer).decode(), "tasks": tasks}


def scales_case() -> dict[str, Any]:
    """Ranges worked out by hand: the 99.5th percentile of the size, rounded up to a tick of 1, 2, 2.5 or 5 times a power of ten."""
    one_large = [0.0005] * 199 + [0.0031]  # 200 heads: the percentile is the largest
    capped = [0.0005] * 198 + [0.0031, 0.9] + [0.0005] * 400  # of 600, 0.9 and 0.0031 lie beyond it
    ranges = [
        {"values": one_large, "signed": False, "low": 0, "high": 0.004, "step": 0.001},
        {"values": capped, "signed": False, "low": 0, "high": 0.0006, "step": 0.0002},
        {"values": [-0.26, 0.1, 0.0], "signed": True, "low": -0.3, "high": 0.3, "step": 0.1},
        {"values": [0.0, 0.0], "signed": False, "low": 0, "high": 0.25, "step": 0.25},
        {"values": [-3.0, 17.0], "signed": False, "low": -5, "high": 20, "step": 5},
    ]
    return {"ranges": ranges, "diverging": "08306b 1a5ba3 3f87c8 7bb1dd b9d5ea f3f2ef f8d3ad f2aa66 e07f2c b5580f 6b2f04"}


def write(name: str, content: object) -> None:
    (HERE / name).write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write("reduce.json", [{**case, "expected": expected(case["values"])} for case in cases()])
    write("wire.json", wire_case())
    write("scales.json", scales_case())

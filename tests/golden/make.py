"""Makes the golden fixtures that hold the Python and TypeScript twins together.

Run ``python tests/golden/make.py``. The expectations of reduce.json and views.json are worked
out here and in reference.py the slow way, from the definitions, in plain Python: a third
opinion that neither twin shares code with. wire.json is what ``wire.encode`` sends for one of
the cases.
"""

from __future__ import annotations

import base64
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

from reference import Runs, along, bar, ends, f32, knee, needed, picture

HERE = Path(__file__).parent


def draw(seed: int, runs: int, layers: int, heads: int, low: float, high: float) -> Runs:
    rng = random.Random(seed)
    return [
        [[f32(round(rng.uniform(low, high), 4) + 0.0) for _ in range(heads)] for _ in range(layers)]
        for _ in range(runs)
    ]


def cases() -> list[dict[str, Any]]:
    edge = draw(4, 5, 3, 4, 0.0, 1.0)
    for run in edge:
        # As a double, 0.7 is more than its float32: compared as doubles, this head falls below.
        run[1][2] = f32(0.7)
    edge[0][0][0] = f32(0.7)
    flat = [[[f32(0.25)] * 3] * 2]
    return [
        {"name": "one run", "layers": [0, 1, 2], "values": draw(1, 1, 3, 4, 0.0, 1.0)},
        {
            "name": "five runs, signed",
            "layers": [0, 1, 2, 3],
            "values": draw(2, 5, 4, 3, -1.0, 1.0),
        },
        {
            "name": "six runs, layers with gaps",
            "layers": [3, 7, 11],
            "values": draw(3, 6, 3, 4, -0.002, 0.004),
        },
        {"name": "a threshold that is a score", "layers": [0, 1, 2], "values": edge},
        {"name": "a hundred runs", "layers": [0, 1], "values": draw(5, 100, 2, 3, -1.0, 2.0)},
        {
            "name": "a hundred and one runs",
            "layers": [0, 1],
            "values": draw(6, 101, 2, 2, 0.0, 1.0),
        },
        {"name": "all heads alike", "layers": [0, 1], "values": flat},
    ]


def kept(runs: int) -> list[int]:
    """All ranks of up to 33 runs; of more, the 33 nearest to evenly spread, halves upwards."""
    return (
        list(range(runs))
        if runs <= 33
        else [math.floor(i * (runs - 1) / 32 + 0.5) for i in range(33)]
    )


def expected(values: Runs) -> dict[str, Any]:
    runs, layers, heads = len(values), len(values[0]), len(values[0][0])
    cells = [
        sorted(values[r][y][x] for r in range(runs)) for y in range(layers) for x in range(heads)
    ]
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
        "top": [
            list(divmod(i, heads))
            for i in sorted(range(len(mean)), key=lambda i: (-mean[i], i))[:4]
        ],
        "agreement": agreements,
        "threshold": thresholds,
    }


def packed(column: list[float], ranks: list[int]) -> list[float]:
    """What the wire keeps of one head's sorted runs, in exact fractions.

    Between least and most, whole 65535ths of the range, rounded down.
    """
    least, most = Fraction(column[0]), Fraction(column[-1])
    inner = [
        math.floor((Fraction(column[rank]) - least) / (most - least) * 65535)
        if most > least
        else 65535
        for rank in ranks[1:-1]
    ]
    return [
        column[0],
        *(f32(float(least + steps * (most - least) / 65535)) for steps in inner),
        column[-1],
    ]


def wire_case() -> dict[str, Any]:
    from headwidget.display import wire
    from headwidget.scores import HeadScores

    by_name = {case["name"]: case for case in cases()}
    tied = draw(8, 40, 3, 4, 0, 1)
    for i, run in enumerate(tied):
        run[0][0] = f32(0.7)  # all runs alike
        run[0][1] = f32(min(run[0][1], 0.25))  # most runs at the maximum: they stay there
        run[0][2] = f32((1 + i) * 1e-45)  # the smallest numbers there are
        run[0][3] = f32((i - 20) * 1.5e37)  # a range of 6e38, beyond float32
        run[1][1] = f32(
            1e-30 if i else -1e38
        )  # a maximum that least + range, in double, does not meet
        run[1][0] = f32(1 + (i % 3) * 2**-23)  # neighbours in float32
    values = {
        "<b>syntax</b>": draw(7, 3, 3, 4, -1.0, 1.0),
        "math 🧮": by_name["six runs, layers with gaps"]["values"],
        "long": tied,
    }
    known = {
        "long": {
            "accuracy": 0.95,
            "beats_foil": 0.999,
            "dropped": [{"why": "too long", "count": 3}],
        }
    }
    given: dict[str, Any] = {
        "method": "mine",
        "layers": [3, 7, 11],
        "categories": {"long": "memory"},
        "meta": {"model": "tiny", "axes": ["Block", "Head"], "tasks": known},
    }
    header, buffer = wire.encode(HeadScores.from_arrays(values, **given))
    tasks = []
    for runs in values.values():
        full = expected(runs)
        columns = [sorted(r[y][x] for r in runs) for y in range(3) for x in range(4)]
        heads = [packed(c, full["ranks"]) if len(runs) > 33 else c for c in columns]
        tasks.append(
            {
                "mean": full["mean"],
                "median": full["median"],
                "order": [list(one) for one in zip(*heads)],
            }
        )
    return {
        "values": values,
        "given": given,
        "header": header,
        "buffer": base64.b64encode(buffer).decode(),
        "tasks": tasks,
    }


def scales_case() -> dict[str, Any]:
    """Ranges worked out by hand.

    The 99.5th percentile of the size, rounded up to a tick of 1, 2, 2.5 or 5 times a power of
    ten.
    """
    one_large = [0.0005] * 199 + [0.0031]  # 200 heads: the percentile is the largest
    capped = [0.0005] * 198 + [0.0031, 0.9] + [0.0005] * 400  # of 600, 0.9 and 0.0031 lie beyond it
    ranges = [
        {"values": one_large, "signed": False, "low": 0, "high": 0.004, "step": 0.001},
        {"values": capped, "signed": False, "low": 0, "high": 0.0006, "step": 0.0002},
        {"values": [-0.26, 0.1, 0.0], "signed": True, "low": -0.3, "high": 0.3, "step": 0.1},
        {"values": [0.0, 0.0], "signed": False, "low": 0, "high": 0.25, "step": 0.25},
        {"values": [-3.0, 17.0], "signed": False, "low": -5, "high": 20, "step": 5},
        {
            "values": [0.01] * 399 + [-1000.0],
            "signed": False,
            "low": -1000,
            "high": 0.01,
            "step": 500,
        },  # one far below
    ]
    return {"ranges": ranges}


# ---- the views ----

START = {"value": None, "top": 10, "percent": 5, "elbow": 1}
CHOICES = {
    "view": ["tasks", "agreement", "categories"],
    "rule": ["value", "top", "percent", "elbow"],
    "sign": ["either", "helps", "hurts"],
    "reduction": ["mean", "median"],
    "normalize": [None, "share"],
    "colormap": [None, "viridis", "cividis", "magma", "turbo", "blue-orange"],
    "scale": ["shared", "own"],
    "orientation": [None, "y", "x"],
}
NOTHING = dict.fromkeys(
    (
        "tasks",
        "task",
        "threshold",
        "normalize",
        "colormap",
        "cap",
        "orientation",
        "columns",
        "isolated",
    )
)
DEFAULTS = {
    "view": "tasks",
    "rule": "value",
    "agreement": 1,
    "sign": "either",
    "reduction": "mean",
    "scale": "shared",
    **NOTHING,
}
THRESHOLDS = {
    "value": [0, 0.3, f32(0.7), 0.7, 99, 1e300, -0.25],
    "top": [0, 1, 2.7, 5, 99, -1],
    "percent": [0, 5, 25, 33.3, 100, 150],
    "elbow": [0, 0.5, 1, 1.5, 100, 1e300],
}
HITS = [
    ("copying", 0.1),
    ("capital", 0.2),
    ("antonym", 0.12),
    ("language", 0.08),
    ("French", 0.15),
    ("Spanish", 0.03),
]
"""Relations: pairs that are hit or not, and about how many of them."""
KINDS = {
    "copying": "Algorithmic",
    "capital": "Knowledge",
    "antonym": "Linguistic",
    "language": "Knowledge",
    "French": "Translation",
    "Spanish": "Translation",
}
RULES = [{"rule": rule, "threshold": t} for rule, several in THRESHOLDS.items() for t in several]
FEW = [
    {"rule": "value", "threshold": 0.3},
    {"rule": "top", "threshold": 4},
    {"rule": "percent", "threshold": 30},
    {"rule": "elbow", "threshold": 1},
]


def each(*lists: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every choice of one from each list, merged."""
    return [{**one, **rest} for one in lists[0] for rest in each(*lists[1:])] if lists else [{}]


def has(name: str, *values: object) -> list[dict[str, Any]]:
    return [{name: value} for value in values]


def views_scores() -> list[dict[str, Any]]:
    """Small scores, and what is asked of them."""
    few = {
        "copy": draw(11, 5, 4, 3, 0, 1),
        'a "b", <i>c</i>': draw(12, 6, 4, 3, 0, 0.6),
        "one 🧮": draw(13, 1, 4, 3, 0, 0.9),
    }
    for run in few["copy"]:
        run[2][1] = f32(0.7)  # as a double, 0.7 is more than its float32
    groups = {"copy": "memory", 'a "b", <i>c</i>': "language"}
    both = {"syntax": draw(14, 8, 3, 4, -1, 1), "math": draw(15, 8, 3, 4, -0.5, 0.8)}
    for i, run in enumerate(both["math"]):
        run[0] = [
            0.0,
            0.25,
            -0.25,
            f32((-1) ** i * 0.5),
        ]  # nothing; two of one size; a mean of nothing from runs that are something
        both["syntax"][i][0][0] = -0.0
    forty = {"helps": draw(16, 40, 2, 3, -0.2, 1), "hurts": draw(17, 40, 2, 3, -1, 0.2)}
    tied = {
        "tied": [
            [[f32(x) for x in row] for row in ([0.5, 0.5, 0.1], [0.1, 0.9, 0.5])] for _ in range(2)
        ]
    }
    nothing = {"nothing": [[[0.0] * 3] * 2] * 3, "something": draw(18, 3, 2, 3, 0, 1)}
    below = {"below": draw(19, 3, 2, 3, -0.3, 1)}
    hits = {
        name: [
            [[float(x < share) for x in row] for row in run] for run in draw(40 + i, 20, 3, 5, 0, 1)
        ]
        for i, (name, share) in enumerate(HITS)
    }
    for i, run in enumerate(hits["antonym"]):
        run[1][2] = float(i < 3)  # just 0.15 of its 20 pairs
        run[1][3] = float(i < 7)  # just 0.35, which as a double is more than its float32
    quiet = {
        "loud": draw(23, 3, 2, 3, -1, 1),
        "quiet": draw(24, 3, 2, 3, -0.1, 0.05),
        "still": [[[0.0] * 3] * 2] * 3,
    }
    tiny = {
        "tiny": [[[f32(x * 1e-7) for x in row] for row in run] for run in draw(20, 2, 2, 3, -1, 1)]
    }
    large = {
        "large": [[[f32(x * 3e5) for x in row] for row in run] for run in draw(21, 2, 2, 3, 0, 1)]
    }

    unsigned_at = each(has("view", "tasks"), RULES)
    unsigned_at += each(
        has("view", "tasks"),
        has("reduction", "mean", "median"),
        has("normalize", None, "share"),
        [{}, *FEW, {"threshold": 0.1}],
    )
    unsigned_at += each(
        has("view", "tasks", "agreement"),
        has("cap", 0.35, 2, 0.0123, 125000, 3e-7, "90%", "50%", "100%", "0.1%"),
    )
    unsigned_at += each(
        has("view", "tasks", "agreement", "categories"),
        has("orientation", "x", "y"),
        has("columns", None, 2),
    )
    unsigned_at += each(
        has("view", "tasks", "agreement", "categories"), [{}, FEW[0]], has("task", *few)
    )
    own = each(has("view", "tasks", "agreement", "categories"), has("scale", "own"), [{}, FEW[0]])
    unsigned_at += each(own, has("cap", None, 0.35, "50%"))
    unsigned_at += each(own, has("normalize", "share"))
    hidden = has("tasks", [], ["one 🧮"], ["one 🧮", "copy"], ['a "b", <i>c</i>', "one 🧮", "copy"])
    unsigned_at += each(has("view", "tasks", "agreement", "categories"), [{}, FEW[0]], hidden)
    unsigned_at += each(
        has("view", "agreement"), has("agreement", 0, 0.2, 0.5, 0.75, 1), [{}, *FEW]
    )
    unsigned_at += each(
        has("view", "agreement"),
        [
            {"threshold": 0.7},
            {"threshold": 0},
            {"rule": "top", "threshold": 0},
            {"threshold": 1e300},
        ],
    )
    unsigned_at += each(
        has("view", "agreement"),
        has("normalize", "share"),
        has("agreement", 0.5, 1),
        [{}, *FEW, {"threshold": 0.1}, {"threshold": 0.05}],
    )
    unsigned_at += each(has("view", "categories"), [{}, *RULES])
    unsigned_at += each(
        has("view", "categories"),
        FEW[:2],
        has("isolated", "Unclassified", "memory", "one 🧮", "2 categories", "3 categories", "gone"),
    )
    unsigned_at += each(has("view", "tasks", "agreement"), has("colormap", "magma", "blue-orange"))

    signs = has("sign", "either", "helps", "hurts")
    signed_at = each(has("view", "tasks"), signs, RULES)
    signed_at += each(
        has("view", "tasks"),
        signs,
        has("reduction", "median"),
        has("normalize", None, "share"),
        [{}, *FEW, {"threshold": 0.1}],
    )
    signed_at += each(
        has("view", "agreement"),
        signs,
        has("agreement", 0, 0.4, 1),
        [{}, *FEW, {"threshold": 0}, {"threshold": -0.2}],
    )
    signed_at += each(
        has("view", "agreement"),
        signs,
        has("normalize", "share"),
        has("agreement", 0.6),
        [{"threshold": 0.1}, FEW[1]],
    )
    signed_at += each(has("view", "categories"), signs, [{}, *FEW])
    signed_at += each(own, has("reduction", "mean", "median"), has("sign", "either", "hurts"))
    signed_at += each(
        has("view", "tasks", "agreement"),
        has("cap", 0.5, "80%", None),
        has("tasks", ["math"], ["math", "syntax"]),
    )

    forty_at = each(has("view", "tasks", "categories"), signs, [{}, *FEW])
    forty_at += each(
        has("view", "tasks"),
        has("reduction", "median"),
        has("normalize", None, "share"),
        signs,
        [{}, FEW[1]],
    )
    forty_at += each(has("view", "agreement"), signs, has("agreement", 0, 1))
    isolated = has("isolated", None, "Knowledge", "2 categories", "4 categories")
    hits_at = each(
        has("view", "categories"),
        has("threshold", 0.05, 0.1, 0.15, f32(0.15), 0.2, 0.35, 1),
        isolated,
    )
    all_views = each(
        has("view", "tasks", "agreement", "categories"),
        has("normalize", None, "share"),
        [{}, {"threshold": 0.01}, {"threshold": 0}, *FEW],
    )
    given = {"layers": [0, 3, 7, 8], "categories": groups}
    return [
        *unmeasured_scores(both, signs),
        {"name": "unsigned", "values": few, "signed": False, **given, "asked": unsigned_at},
        {"name": "signed", "values": both, "signed": True, "asked": signed_at},
        {
            "name": "forty runs",
            "values": forty,
            "signed": True,
            "categories": {"helps": "one", "hurts": "one"},
            "asked": forty_at,
        },
        {
            "name": "ties",
            "values": tied,
            "signed": False,
            "asked": each(
                has("view", "tasks", "categories"),
                has("rule", "top"),
                has("threshold", *range(1, 7)),
            ),
        },
        {
            "name": "relations",
            "values": hits,
            "signed": False,
            "categories": KINDS,
            "asked": hits_at,
        },
        {"name": "nothing", "values": nothing, "signed": False, "asked": all_views},
        {
            "name": "nothing, signed",
            "values": nothing,
            "signed": True,
            "asked": each(all_views, signs[:2]),
        },
        {
            "name": "below zero but not signed",
            "values": below,
            "signed": False,
            "asked": each(
                has("view", "tasks", "agreement"), [{}, *FEW, {"cap": 0.5}, {"scale": "own"}]
            ),
        },
        {
            "name": "a quiet task",
            "values": quiet,
            "signed": True,
            "asked": each(
                has("view", "tasks", "agreement"),
                [{}, FEW[0], {"tasks": ["quiet"]}, {"scale": "own"}, {"cap": 0.01}],
                has("normalize", None, "share"),
            ),
        },
        {
            "name": "tiny",
            "values": tiny,
            "signed": True,
            "asked": has("view", "tasks", "agreement"),
        },
        {
            "name": "large",
            "values": large,
            "signed": False,
            "asked": has("view", "tasks", "agreement"),
        },
    ]


def unmeasured_scores(both: dict[str, Runs], signs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Scores with heads that some runs, or none, have measured."""
    some = {name: [[[*row] for row in run] for run in runs] for name, runs in both.items()}
    some["late"] = draw(22, 3, 3, 4, -1, 1)
    for i, run in enumerate(some["syntax"]):
        run[1] = [None] * 4  # a layer that no run came to
        run[2] = [x if i < head else None for head, x in enumerate(run[2], start=1)]
    for i, run in enumerate(some["math"]):
        run[2][3] = None if i % 2 else run[2][3]
    for run in some["late"]:
        run[:] = [[None] * 4] * 3  # a task that was not begun
    some_at = each(
        has("view", "tasks", "agreement", "categories"),
        has("reduction", "mean", "median"),
        has("normalize", None, "share"),
        signs,
        [{}, *FEW, {"threshold": 0}, {"rule": "top", "threshold": 9}],
    )
    some_at += each(
        has("view", "agreement"), signs, has("agreement", 0, 0.3, 0.5, 0.75, 1), [{}, *FEW]
    )
    some_at += each(
        has("view", "tasks", "agreement", "categories"),
        has("tasks", ["late"], ["syntax"], ["late", "syntax"], []),
        [{}, *FEW[:2]],
    )
    return [
        {
            "name": "not all measured",
            "values": some,
            "signed": True,
            "categories": {"math": "one", "late": "one"},
            "asked": some_at,
        },
        {
            "name": "not all measured, unsigned",
            "values": {
                name: [[[x and abs(x) for x in row] for row in run] for run in runs]
                for name, runs in some.items()
            },
            "signed": False,
            "asked": each(
                has("view", "tasks", "agreement"), has("agreement", 0.5, 1), [{}, *FEW, *RULES]
            ),
        },
    ]


def short(value: float | None) -> float | None:
    """The shortest decimal that float32 rounds to the same number."""
    if value is None:
        return None
    return next(
        one for digits in range(1, 18) if f32(one := float(f"{value + 0.0:.{digits}g}")) == value
    )


def numbers(values: dict[str, Runs]) -> dict[str, Any]:
    """The scores as arrays, NaN for None."""
    import numpy as np

    return {name: np.array(runs, dtype=np.float32) for name, runs in values.items()}


def bits(mask: list[bool] | None) -> str | None:
    return None if mask is None else "".join(str(int(one)) for one in mask)


def views_case() -> dict[str, Any]:
    """Scores as values and as they cross the wire, and the picture for each of the settings.

    Values are shortened: compare them as float32.
    """
    from headwidget.display import wire
    from headwidget.scores import HeadScores

    out = []
    for case in views_scores():
        kept: dict[str, Any] = {
            "categories": {},
            "layers": list(range(len(next(iter(case["values"].values()))[0]))),
            **case,
        }
        given = {name: kept[name] for name in ("signed", "layers", "categories")}
        arrays = numbers(case["values"])
        header, buffer = wire.encode(HeadScores.from_arrays(arrays, method="mine", **given))
        maps: list[list[float | None]] = []  # each once
        pictures = []
        seen: list[dict[str, Any]] = []
        for asked in kept.pop("asked"):
            at = {**DEFAULTS, **asked}
            if at in seen:
                continue
            seen.append(at)
            found = picture(kept, at)
            maps += [
                one
                for _, values, _ in found["panels"]
                if (one := [short(x) for x in values]) not in maps
            ]
            found["panels"] = [
                [title, maps.index([short(x) for x in values]), bits(passes)]
                for title, values, passes in found["panels"]
            ]
            if at["scale"] == "own":
                found["ends"] = [span and [span, ends(span)] for span in found["own"]]
            del found["own"]
            pictures.append(
                [asked, {**found, "bar": bar(found["range"]), "passing": bits(found["passing"])}]
            )
        values = {
            name: [[[short(x) for x in row] for row in run] for run in runs]
            for name, runs in case["values"].items()
        }
        sent = {"header": {**header, "about": []}, "buffer": base64.b64encode(buffer).decode()}
        out.append({**kept, "values": values, **sent, "maps": maps, "pictures": pictures})
    return {"settings": {"defaults": DEFAULTS, "choices": CHOICES, "start": START}, "scores": out}


def many_case() -> dict[str, Any]:
    """Tasks of more runs than the wire keeps order statistics of: every run, and what crosses."""
    from headwidget.display import wire
    from headwidget.scores import HeadScores

    values = {}
    for i, runs in enumerate((34, 40, 65, 100, 257)):
        values[f"{runs} runs"] = draw(30 + i, runs, 1, 6, -1, 1)
        for r, run in enumerate(values[f"{runs} runs"]):
            run[0][0] = f32(round(run[0][0], 1))  # many ties
            run[0][1] = (
                0.0 if r % 3 else run[0][1]
            )  # mostly nothing, which no whole number of steps meets
            run[0][2] = f32(run[0][2] * 1e-6 - 0.5)  # close together
            run[0][3] = f32(run[0][3] * (1e30 if r == 1 else 1e-3))  # one far away
    for runs in (40, 100):  # heads that were not measured in every run
        values[f"some of {runs} runs"] = draw(36 + runs, runs, 1, 6, -1, 1)
        for r, run in enumerate(values[f"some of {runs} runs"]):
            for head, measured in enumerate((0, 1, 2, 20, 36, runs)):
                if (7 * r) % runs >= measured:  # the same number of runs, not the first ones
                    run[0][head] = None
    header, buffer = wire.encode(HeadScores.from_arrays(numbers(values), method="mine"))
    short_values = {
        name: [[[short(x) for x in row] for row in run] for run in runs]
        for name, runs in values.items()
    }
    return {
        "values": short_values,
        "header": {**header, "about": []},
        "buffer": base64.b64encode(buffer).decode(),
    }


def palette_case() -> dict[str, Any]:
    """matplotlib's maps at even distances, our diverging map, and colours of ten categories."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    sampled = {"viridis": 17, "cividis": 17, "magma": 17, "turbo": 33}
    maps = {
        name: " ".join(to_hex(colormaps[name](i / (n - 1)))[1:] for i in range(n))
        for name, n in sampled.items()
    }
    maps["blue-orange"] = (
        "08306b 1a5ba3 3f87c8 7bb1dd b9d5ea f3f2ef f8d3ad f2aa66 e07f2c b5580f 6b2f04"
    )
    own, several, none = (
        "4a7ad8 fe8700 1fca7f ed492b 8fd8f7 b5b000 b0146a 5b6b7b".split(),
        "5e0b92 3f230e f496dd",
        "d9d9d9",
    )
    classes = {}
    for n in range(1, 11):
        more = (
            several.split()[: n - 1] if n <= 4 else [along(several, i, n - 1) for i in range(n - 1)]
        )
        classes[str(n)] = " ".join([none, *((own + own)[:n]), *more])
    return {
        "maps": maps,
        "ramps": {
            name: " ".join(along(stops, i, 256) for i in range(256)) for name, stops in maps.items()
        },
        "categories": classes,
    }


def rank_case() -> list[dict[str, Any]]:
    """Means of heads (with ties, and zeros of both signs), and their ranks by mean and by size."""
    maps: dict[str, list[Any]] = {
        "signed": [0.5, -0.75, 0.25, 0.5, -2.0, 0.0],
        "unsigned, ties": [0.25, 0.25, 1.0, 0.0, 1.0, 0.25],
        "all alike": [f32(0.1)] * 6,
        "zeros of both signs": [0.0, -0.0, 1.0, -1.0, -0.0, 0.0],
        "one head": [-0.5],
        "not all measured": [0.5, None, -1.0, None, 0.5, 2.0],
    }
    found = []
    for name, means in maps.items():
        for by in ("mean", "size"):
            values = [mean and (abs(mean) if by == "size" else mean) for mean in means]
            there = [i for i, value in enumerate(values) if value is not None]
            found.append(
                {
                    "name": f"{name}, by {by}",
                    "ranked_by": by,
                    "means": means,
                    "ranks": [
                        0 if value is None else 1 + sum(values[i] > value for i in there)
                        for value in values
                    ],
                    "first": sorted(there, key=lambda i: (-values[i], i)),
                }
            )
    return found


def page_case() -> list[dict[str, Any]]:
    """Exported pages from their texts, and the line under them from a header."""
    from headwidget.display import page, wire
    from headwidget.scores import HeadScores, provenance

    hostile = "</script><script>alert('1')</script> & <!-- <b> \"½\" 🎉"
    out = []
    for tasks in (1, 3, 5):
        arrays = {f"{hostile} {i}": [[float(i), 0.5]] for i in range(tasks)}
        meta = {"model": "tiny" * (tasks > 1), "seed": 3, "partial": tasks == 3}
        scores = HeadScores.from_arrays(arrays, method="mine", meta=meta)
        texts = {
            "title": hostile,
            "footer": provenance.line(scores),
            "css": "p::after { content: '</STYLE>' } $& $1",
            "script": "const a = '</sCript>', b = `$&`;",
            "state": json.dumps({"a": hostile}, ensure_ascii=False),
        }
        header = wire.encode(scores)[0]
        shown = {"about": header["about"], "tasks": header["tasks"]}
        out.append({"texts": texts, "header": shown, "page": page.text(**texts)})
    return out


def write(name: str, content: object) -> None:
    (HERE / name).write_text(
        json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    write("reduce.json", [{**case, "expected": expected(case["values"])} for case in cases()])
    write("rank.json", rank_case())
    write("wire.json", wire_case())
    write("scales.json", scales_case())
    write("views.json", views_case())
    write("many.json", many_case())
    write("palette.json", palette_case())
    write("page.json", page_case())

"""Make the scores that notebooks read from data/, with the embedded model.

`python notebooks/make_data.py` makes all of them in twenty minutes, 190 KB;
`python notebooks/make_data.py smollm2-gating` makes that one.

| notebook | reads |
|---|---|
| 02_always_any | gradient scores of two tasks, 32 prompts each |
| 03_cognitive_heads | ablation scores of eight tasks, 8 prompts each |
| 04_gating | four quick fits of gates on two tasks, 120 prompts each |
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import headwidget as hw

TO = Path(__file__).parent / "data"
FILES: dict[str, tuple[str, int | None, dict[str, Any]]] = {
    # file: suite, prompts of each task (None: all), method and its options
    "smollm2-gradient": ("math-syntax", 32, {"method": "gradient"}),
    "smollm2-cognitive-ablation": ("cognitive", 8, {"method": "ablation"}),
    "smollm2-gating": ("math-syntax", None, {"method": "gating", "preset": "quick"}),
}


def main(names: list[str]) -> None:
    """Score and write."""
    model = hw.load()
    for name in names:
        suite, prompts, options = FILES[name]
        tasks = hw.tasks.suite(suite)
        if prompts is not None:
            tasks = [task.sample(prompts) for task in tasks]
        scores = hw.score(model, tasks, **options)
        file = scores.save(TO / f"{name}.safetensors")
        print(scores, f"{file.stat().st_size / 1024:.0f} KB", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:] or list(FILES))

"""Make the scores that notebooks read from data/, with the embedded model: `python notebooks/make_data.py`, a quarter of an hour; 160 KB.

02_always_any.ipynb reads gradient scores of two tasks, 32 prompts each; 03_cognitive_heads.ipynb ablation scores of eight tasks, 8 prompts each.
"""

from __future__ import annotations

from pathlib import Path

import headwidget as hw

TO = Path(__file__).parent / "data"
MADE = {  # file: suite, prompts of each task, method
    "smollm2-gradient": ("math-syntax", 32, "gradient"),
    "smollm2-cognitive-ablation": ("cognitive", 8, "ablation"),
}


def main() -> None:
    """Score and write."""
    model = hw.load()
    for name, (suite, prompts, method) in MADE.items():
        scores = hw.score(
            model, [task.sample(prompts) for task in hw.tasks.suite(suite)], method=method
        )
        print(
            scores,
            f"{scores.save(TO / f'{name}.safetensors').stat().st_size / 1024:.0f} KB",
            sep="\n",
        )


if __name__ == "__main__":
    main()

"""Make the scores that notebooks read, with the embedded model: for 02_always_any.ipynb gradients of two tasks, 32 prompts each (half a minute),
for 03_cognitive_heads.ipynb ablations of eight tasks, 8 prompts each (some minutes).

python notebooks/make_data.py
"""

from __future__ import annotations

from pathlib import Path

import headwidget as hw

TO = Path(__file__).parent / "data"
FILES = {"smollm2-gradient": ("math-syntax", "gradient", 32), "smollm2-cognitive-ablation": ("cognitive", "ablation", 8)}


def main() -> None:
    """Score and write."""
    for name, (suite, method, prompts) in FILES.items():
        tasks = [task.sample(prompts) for task in hw.tasks.suite(suite)]
        scores = hw.score(hw.load(), tasks, method=method)
        print(scores, f"{scores.save(TO / f'{name}.safetensors').stat().st_size / 1024:.0f} KB", sep="\n")


if __name__ == "__main__":
    main()

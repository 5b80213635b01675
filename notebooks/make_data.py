"""Make the scores that 02_always_any.ipynb reads: the embedded model, two tasks, 32 prompts each. Half a minute; the file is 80 KB.

python notebooks/make_data.py
"""

from __future__ import annotations

from pathlib import Path

import headwidget as hw

TO = Path(__file__).parent / "data" / "smollm2-gradient.safetensors"


def main() -> None:
    """Score and write."""
    tasks = [task.sample(32) for task in hw.tasks.suite("math-syntax")]
    scores = hw.score(hw.load(), tasks, method="gradient")
    print(scores, f"{scores.save(TO).stat().st_size / 1024:.0f} KB", sep="\n")


if __name__ == "__main__":
    main()

"""The view that CONTRIBUTING shows, word for word: it draws what it says, its twin compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import headwidget as hw
from headwidget.display.settings import settings

ROOT = Path(__file__).parents[2]
TSC = ROOT / "node_modules" / ".bin" / "tsc"


def example(language: str) -> str:
    """The first code block of a language under "Write a view"."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = contributing.split("## Write a view")[1]
    block = re.search(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert block is not None
    return block[1]


def test_the_view_of_contributing_draws_how_far_runs_lie_apart() -> None:
    names: dict[str, Any] = {}
    exec(compile(example("python"), "CONTRIBUTING.md, Write a view", "exec"), names)
    view = names["Spread"]()
    rng = np.random.default_rng(0)
    values = {task: rng.normal(size=(5, 3, 4)).astype(np.float32) for task in ("a", "b")}
    scores = hw.HeadScores.from_arrays(values, method="made up", signed=True)

    picture = view.picture(scores, settings(scores, threshold=0.2))
    assert [panel.title for panel in picture.panels] == ["a", "b"]
    for panel in picture.panels:
        np.testing.assert_array_equal(panel.values, np.ptp(values[panel.title], axis=0))
        mean = np.abs(values[panel.title].mean(axis=0))
        np.testing.assert_array_equal(panel.passes, mean >= np.float32(0.2))
    alone = view.picture(scores, settings(scores, task="b"))
    assert [panel.title for panel in alone.panels] == ["b"] and alone.passing is None


def replaced(path: Path, old: str, new: str) -> None:
    """Replace text that occurs once in a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_twin_of_the_view_compiles_where_contributing_says_to_put_it(tmp_path: Path) -> None:
    assert TSC.exists(), "run `npm ci` first"
    shutil.copytree(ROOT / "js", tmp_path / "js", ignore=shutil.ignore_patterns("tests"))
    shutil.copy(ROOT / "tsconfig.json", tmp_path)
    display = tmp_path / "js" / "display"
    (display / "views" / "spread.ts").write_text(example("ts"), encoding="utf-8")
    replaced(display / "settings.ts", "type ViewName =", 'type ViewName = "spread" |')
    index = display / "views" / "index.ts"
    replaced(index, "  tasks: new Tasks(),", "  tasks: new Tasks(),\n  spread: new Spread(),")
    replaced(
        index, "import type { View }", 'import { Spread } from "./spread";\nimport type { View }'
    )

    command = [str(TSC), "--noEmit", "--project", str(tmp_path)]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stdout

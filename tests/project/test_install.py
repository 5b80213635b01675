"""Installing: import is light, and the wheel works in a clean environment without node."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_import_brings_neither_torch_nor_transformers_nor_matplotlib() -> None:
    code = """
import sys, headwidget as hw
hw.HeadScores, hw.open, hw.Task, hw.explore
print(*sorted(sys.modules), sep="\\n")
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    modules = set(out.stdout.split())
    assert "headwidget.display.explorer" in modules
    assert modules & {"torch", "transformers", "matplotlib", "pandas"} == set()


def test_an_unknown_name_says_what_there_is() -> None:
    out = subprocess.run(
        [sys.executable, "-c", "import headwidget as hw; hw.laod"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert "headwidget has no 'laod'; it has" in out.stderr and "load" in out.stderr


@pytest.mark.slow
def test_sdist_and_wheel_carry_the_bundle_and_work_without_node(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "headwidget/static/widget.js",
        "headwidget/static/widget.css",
        "headwidget/models/embedded.py",
        "headwidget/py.typed",
        "headwidget/tasks/suites/relations.jsonl",
    } <= names
    assert not [n for n in names if n.startswith(("js/", "tests/", "node_modules/"))]
    # A clean environment that has the dependencies' files but not this checkout, and no
    # node on its path.
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)],
        check=True,
        env={**os.environ, "PATH": "/nowhere"},
    )
    own = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    packages = next(p for p in sys.path if p.endswith("site-packages"))
    (own / "dependencies.py").write_text(f"import sys; sys.path.append({packages!r})\n")
    code = (
        "import dependencies, headwidget as hw, pathlib\n"
        "assert 'venv/lib' in hw.__file__, hw.__file__\n"
        "explorer = hw.explore(hw.HeadScores.from_arrays({'a': [[1, 2]]}, method='m'))\n"
        "explorer.to_html('page.html')\n"
        "print(len(pathlib.Path('page.html').read_text()))"
    )
    out = subprocess.run(
        [str(python), "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": "/nowhere"},
    )
    assert out.returncode == 0, out.stderr
    assert int(out.stdout) > 10_000

"""Programs that serve notebooks to a browser: each a process with a port and folders of
its own, ended when its test ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support import end_with_parent

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "runtime": "JUPYTER_RUNTIME_DIR",
    "config": "JUPYTER_CONFIG_DIR",
    "data": "JUPYTER_DATA_DIR",
    "settings": "JUPYTERLAB_SETTINGS_DIR",
    "workspaces": "JUPYTERLAB_WORKSPACES_DIR",
    "ipython": "IPYTHONDIR",
    "marimo-config": "XDG_CONFIG_HOME",
    "marimo-state": "XDG_STATE_HOME",
}
SYNTHETIC = """
import numpy as np, headwidget as hw
rng = np.random.default_rng(0)
names = {names!r}
values = {{name: rng.exponential(size=(5, 6, 8)).astype("float32") for name in names}}
scores = hw.HeadScores.from_arrays(
    values, method="mine", layers=[1, 3, 5, 7, 9, 11], meta={{"model": "made up"}})
explorer = hw.explore(scores, preview=None)
explorer
"""
"""A notebook's cell with an explorer of made-up scores; ``names`` are its tasks."""


PATIENCE = 60.0
"""Seconds that a page or a kernel may take on a machine with much else to do."""


def wait_until(check: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The first true answer of ``check``, or a failure that says what was waited for and
    what came last."""
    end, last = time.monotonic() + seconds, None
    while time.monotonic() < end:
        if last := check():
            return last
        time.sleep(0.05)
    pytest.fail(f"waited {seconds:g} s for {what}; last answer: {last!r}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def notebook_of(*cells: str) -> nbformat.NotebookNode:
    """A notebook of code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    return notebook


@dataclass(frozen=True)
class Server:
    """A running Jupyter server and its folders."""

    url: str
    token: str
    root: Path
    runtime: Path

    def add(self, source: Path) -> str:
        """Copy a notebook into the server's folder; gives its path there."""
        name = f"{source.stem}-{secrets.token_hex(3)}.ipynb"
        shutil.copy(source, self.root / name)
        return name

    def write(self, *cells: str) -> str:
        """Make a notebook of code cells; gives its path there."""
        name = f"test-{secrets.token_hex(3)}.ipynb"
        nbformat.write(notebook_of(*cells), self.root / name)
        return name


@contextlib.contextmanager
def serving(base: Path, module: list[str], url: str) -> Iterator[None]:
    """Run ``python -m module …`` in ``base / "root"`` until ``url`` answers, and end it
    afterwards; its output is ``base / "server.log"``."""
    folders = {name: base / name for name in ("root", *FOLDERS)}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    env = {**os.environ, **{variable: str(folders[name]) for name, variable in FOLDERS.items()}}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    log = base / "server.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            end_with_parent.command("-m", *module),
            env=env,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folders["root"],
        )

    def up() -> bool:
        if process.poll() is not None:
            pytest.fail(f"{module[0]} stopped:\n{log.read_text()[-3000:]}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return True
        return False

    try:
        wait_until(up, f"{module[0]} to answer", 3 * PATIENCE)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def marimo(base: Path, app: str) -> Iterator[str]:
    """Serve a marimo app from its source; gives its URL."""
    (base / "root").mkdir()
    (base / "root" / "app.py").write_text(app)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["marimo", "run", "app.py", "--headless", "--port", str(port)]
    with serving(base, command, f"{url}/health"):
        yield url

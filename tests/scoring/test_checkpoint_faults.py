"""Checkpoints where the disk fails, or the process is killed: scores are never lost."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwidget as hw
from headwidget.scoring import checkpoint, journal, registry
from tests.support import tiny
from tests.support.checkpoints import TASKS, check_same, entries
from tests.support.lab_tools import at_each_block, forwards
from tests.support.unprivileged import unprivileged


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are kept at every chunk; what a test registers is gone after it."""
    monkeypatch.setattr(checkpoint, "STATE_SECONDS", 0)
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


def score_with(path: Path, **changes: Any) -> tuple[hw.HeadScores, list[str]]:
    call = {"method": "ablation", "batch_size": 1, "progress": False, **changes}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = hw.score(tiny.model("llama"), TASKS, checkpoint=path, **call)
    said = [str(w.message) for w in caught if "checkpoint" in str(w.message)]
    for warning in caught:
        if "checkpoint" in str(warning.message):
            assert warning.filename == __file__, "it points to the user's line"
    return scores, said


@pytest.mark.parametrize("how", ["removed", "replaced", "at the end"])
def test_a_file_that_goes_away_meanwhile_costs_no_scores(
    how: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how != "at the end":
        monkeypatch.setattr(journal, "SYNC_SECONDS", 0)
    expected = hw.score(tiny.model("llama"), TASKS, "ablation", batch_size=1, progress=False)
    calls = 0

    def act(size: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 100:
            path.unlink()
            if how == "replaced":
                path.write_text("mine")

    with at_each_block(tiny.model("llama"), act):
        scores, said = score_with(path)
    check_same(scores, expected)
    assert len(said) == 1 and "was removed, or replaced, meanwhile" in said[0]
    assert "Scoring goes on without it; save the scores" in said[0]
    assert not path.exists() if how != "replaced" else path.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_said_before_scoring(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = tiny.model("llama")
    for path, sentence in (
        (tmp_path / "file" / "run.ckpt", "'.*file' is a file, not a folder"),
        (tmp_path / "none" / "run.ckpt", "the folder .* does not exist; make it first"),
        (Path("/proc/run.ckpt"), "'/proc/run.ckpt' cannot be written|does not exist"),
        (tmp_path, "is a folder, not a file"),
    ):

        def call(path: Path = path, sentence: str = sentence) -> None:
            with pytest.raises(OSError, match=sentence):
                hw.score(model, TASKS, progress=False, checkpoint=path)

        assert forwards(model, call) == 0


def test_a_read_only_file_is_said_before_scoring() -> None:
    with unprivileged() as folder:
        folder.chmod(0o500)
        with pytest.raises(OSError, match="its folder may not be written to"):
            hw.score(tiny.model("llama"), TASKS, progress=False, checkpoint=folder / "run.ckpt")
        folder.chmod(0o700)


FULL = """
import resource, signal, sys, warnings
from pathlib import Path
import headwidget as hw
from tests.support import tiny
from tests.support.checkpoints import TASKS
path, most = Path(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
call = {"method": "ablation", "batch_size": 1, "progress": False}
expected = hw.score(tiny.model("llama"), TASKS, **call)
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
for _ in range(2):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = hw.score(tiny.model("llama"), TASKS, checkpoint=path, **call)
    said = [str(w.message) for w in caught if "checkpoint" in str(w.message)]
    print(len(said), said[0], path.stat().st_size <= most)
    assert scores.values("two").tobytes() == expected.values("two").tobytes()
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
scores = hw.score(tiny.model("llama"), TASKS, checkpoint=path, **call)  # space was freed
assert scores.values("two").tobytes() == expected.values("two").tobytes()
"""


@pytest.mark.parametrize("most", [10, 900, 5000])
def test_a_full_disk_costs_no_scores(path: Path, most: int) -> None:
    """Full before the first record is whole, or later; the file serves again once there is room."""
    call = [sys.executable, "-c", FULL, str(path), str(most)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        assert line.startswith("1 The checkpoint is not written any more: ")
        assert "cannot be written: file too large; free some space" in line
        assert line.endswith("save the scores when it is done. True")
    assert sum(entry.kind == "end" for entry in entries(path)) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system takes more rights")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_file_system_without_space_costs_no_scores(small_disk: Path) -> None:
    (small_disk / "other").write_bytes(b"x" * 8192)
    expected = hw.score(tiny.model("llama"), TASKS, "ablation", batch_size=1, progress=False)
    scores, said = score_with(small_disk / "run.ckpt")
    check_same(scores, expected)
    assert len(said) == 1 and "no space left on device; free some space" in said[0]
    (small_disk / "other").unlink()
    assert len(entries(small_disk / "run.ckpt")) > 1
    scores, said = score_with(small_disk / "run.ckpt")
    check_same(scores, expected)


@pytest.mark.slow
def test_a_hundred_killed_runs_lose_nothing(tmp_path: Path) -> None:
    """SIGKILL at random moments, several in a row; each run ends with the same bits."""
    call = [sys.executable, "-m", "tests.support.killed", str(tmp_path), "25"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(case["killed"] for case in cases) == 100 and len(cases) == 4
    assert all(case["ended"] >= 1 and case["with a file"] >= 15 for case in cases), cases

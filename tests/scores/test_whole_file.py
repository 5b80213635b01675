"""Saving: the old file or the whole new one, whatever happens meanwhile; and nothing besides."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import headwidget as hw
from headwidget.scores.whole_file import write_whole
from tests.support.unprivileged import NOBODY, unprivileged

SCORES = hw.HeadScores.from_arrays({"a": np.zeros((50, 20, 10))}, method="mine")
LIMIT = 5000
"""Bytes of a file beyond which the system refuses, or ends the process: below what SCORES take."""

SAVERS: dict[str, Callable[[Path], Path]] = {
    "save": SCORES.save,
    "to_html": lambda path: hw.explore(SCORES).to_html(path),
    "to_png": lambda path: hw.explore(SCORES).to_png(path),
    "to_svg": lambda path: hw.explore(SCORES).to_svg(path),
}


def put(path: Path, content: str = "new") -> Path:
    return write_whole(path, lambda temporary: temporary.write_text(content))


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process that runs ``code``."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


@pytest.fixture
def umask() -> Iterator[None]:
    """Put the process's umask back."""
    before = os.umask(0o022)
    yield
    os.umask(before)


# ---- saves that are killed, and saves that are under way ----

LIMITED = """
import resource, signal, sys
import numpy as np
import headwidget as hw

path, limit, ends = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "killed"
scores = hw.HeadScores.from_arrays({"a": np.zeros((50, 20, 10))}, method="mine")
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if ends else signal.SIG_IGN)
try:
    getattr(scores if path.endswith("safetensors") else hw.explore(scores), sys.argv[4])(path)
except OSError as error:
    print(type(error).__name__, error.errno, error)
"""


@pytest.mark.parametrize(("save", "ending"), [("save", "safetensors"), ("to_html", "html")])
def test_the_next_save_removes_what_a_killed_one_left(
    save: str, ending: str, tmp_path: Path
) -> None:
    target = tmp_path / f"s.{ending}"
    target.write_text("old")
    with child(LIMITED, target, LIMIT, "killed", save) as killed:
        killed.communicate()
    assert killed.returncode == -signal.SIGXFSZ
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2  # else the kill came too early to prove anything
    put(tmp_path / "other")
    assert len(list(tmp_path.iterdir())) == 3  # another target's
    SAVERS[save](target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", target.name]


SLOW = """
import sys
from pathlib import Path
from headwidget.scores.whole_file import write_whole

def write(temporary):
    temporary.write_text("half")
    print("under way", flush=True)
    sys.stdin.readline()
    temporary.write_text("from the slow one")

write_whole(Path(sys.argv[1]), write)
"""


def test_a_save_that_is_under_way_in_another_process_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "s"
    with child(SLOW, target) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "under way\n"
        put(target, "from the quick one")
        assert target.read_text() == "from the quick one"
        slow.communicate("\n")
    assert slow.returncode == 0
    assert target.read_text() == "from the slow one"
    assert list(tmp_path.iterdir()) == [target]


def test_a_save_that_is_under_way_in_the_same_process_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "s"

    def slow(temporary: Path) -> None:
        put(target, "inner")
        temporary.write_text("outer")

    write_whole(target, slow)
    assert target.read_text() == "outer" and list(tmp_path.iterdir()) == [target]


def test_only_what_a_save_left_is_removed(tmp_path: Path) -> None:
    """Folders and files that only look like it stay."""
    (tmp_path / ".s.0123abcd.part").mkdir()
    (tmp_path / ".s.0123abcd.part" / "mine").write_text("no lock beside it")
    (tmp_path / ".s.backup.part").mkdir()
    (tmp_path / ".s.89abcdef.part").write_text("a file")
    (tmp_path / ".st.01234567.part").mkdir()
    before = sorted(tmp_path.iterdir())
    put(tmp_path / "s")
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "s"])
    (tmp_path / ".s.fedcba98.part").mkdir()  # killed before it had a lock
    put(tmp_path / "s")
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "s"])


# ---- permissions and links ----


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
def test_a_new_file_has_the_permissions_that_open_gives(
    mask: int, tmp_path: Path, umask: None
) -> None:
    os.umask(mask)
    (tmp_path / "ordinary").write_text("")
    for name, save in SAVERS.items():
        saved = save(tmp_path / name)
        assert saved.stat().st_mode == (tmp_path / "ordinary").stat().st_mode, name


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o755])
def test_saving_over_a_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    owner = NOBODY if os.geteuid() == 0 else os.getuid()
    for name, save in SAVERS.items():
        target = tmp_path / name
        target.write_text("old")
        os.chown(target, owner, -1)
        target.chmod(mode)
        before = target.stat()
        after = save(target).stat()
        assert after.st_ino != before.st_ino and after.st_size != before.st_size
        for field in ("st_mode", "st_uid", "st_gid"):
            assert getattr(after, field) == getattr(before, field), (name, field)


def test_saving_never_sets_the_umask_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("other threads have it, too"))
    put(tmp_path / "s")


def test_what_is_written_is_nobody_elses_to_read_before_it_is_done(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("old")
    (tmp_path / "s").chmod(0o600)

    def write(temporary: Path) -> None:
        temporary.write_text("secret")
        assert stat.S_IMODE(temporary.parent.stat().st_mode) == 0o700

    write_whole(tmp_path / "s", write)


@pytest.mark.parametrize("exists", [True, False], ids=["a file", "not there yet"])
def test_a_link_stays_a_link_and_its_target_is_replaced(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    target, link, second = tmp_path / "data" / "s", tmp_path / "link", tmp_path / "second"
    if exists:
        target.write_text("old")
        target.chmod(0o640)
    link.symlink_to(Path("data") / "s")  # relative
    second.symlink_to(link)
    assert put(second) == second
    assert second.is_symlink() and link.is_symlink() and not target.is_symlink()
    assert target.read_text() == "new" and [*(tmp_path / "data").iterdir()] == [target]
    assert not exists or stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [tmp_path / "data", link, second]


def test_the_file_and_its_folder_reach_the_disk_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[object] = []
    fsync, replace = os.fsync, Path.replace

    def noting_fsync(handle: int) -> None:
        steps.append(os.fstat(handle).st_ino)
        fsync(handle)

    def noting_replace(path: Path, target: Path) -> Path:
        steps.append("renamed")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(Path, "replace", noting_replace)
    target = SCORES.save(tmp_path / "s")
    assert steps == [target.stat().st_ino, "renamed", tmp_path.stat().st_ino]


# ---- what cannot be written ----


@pytest.mark.parametrize(("save", "ending"), [("save", "safetensors"), ("to_html", "html")])
def test_a_disk_that_takes_no_more_is_a_sentence_and_the_old_file_stays(
    save: str, ending: str, tmp_path: Path
) -> None:
    target = tmp_path / f"s.{ending}"
    target.write_text("old")
    with child(LIMITED, target, LIMIT, "goes on", save) as limited:
        said, _ = limited.communicate()
    assert limited.returncode == 0
    assert said.startswith("OSError 27 ")
    assert f"{str(target)!r} cannot be written: file too large; free some space, or" in said
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_a_folder_that_may_not_be_written_to_is_a_sentence() -> None:
    with unprivileged() as folder:
        put(folder / "s", "old")
        folder.chmod(0o555)
        for save in (put, SCORES.save):
            with pytest.raises(PermissionError, match="its folder may not be written to"):
                save(folder / "s")
        folder.chmod(0o755)
        assert (folder / "s").read_text() == "old" and len(list(folder.iterdir())) == 1
        folder.chmod(0o300)  # it may be written to, but not listed
        put(folder / "s")
        folder.chmod(0o755)
        assert (folder / "s").read_text() == "new"


def test_a_folder_that_goes_away_meanwhile_is_a_sentence(tmp_path: Path) -> None:
    folder, away = tmp_path / "folder", tmp_path / "away"
    folder.mkdir()

    def write(temporary: Path) -> None:
        temporary.write_text("new")
        folder.rename(away)

    with pytest.raises(FileNotFoundError, match=r"the folder '.*folder' does not exist"):
        write_whole(folder / "s", write)


def loop(folder: Path) -> Path:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def bound_socket(folder: Path) -> Path:
    here = Path.cwd()
    os.chdir(folder)  # the paths of sockets are short
    try:
        socket.socket(socket.AF_UNIX).bind("socket")
    finally:
        os.chdir(here)
    return folder / "socket"


def below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "s"


@pytest.mark.timeout(60)  # a pipe that is opened waits for ever
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: folder, "is a folder, not a file; give the path of a file"),
        (pipe, "'.*pipe' is a named pipe, not a file"),
        (bound_socket, "'.*socket' is a socket, not a file"),
        (loop, "symbolic links lead in a circle"),
        (below_a_file, "'.*file' is a file, not a folder"),
        (lambda folder: folder / ("x" * 300), "cannot be written: its path .* is too long"),
        (lambda folder: folder / ("x/" * 3000), "cannot be written: its path .* is too long"),
        (lambda folder: folder / "no" / "s", "does not exist; make it first, then write 's'"),
    ],
)
def test_a_place_that_cannot_hold_a_file_is_a_sentence(
    make: Callable[[Path], Path], sentence: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    for save in SAVERS.values():
        with pytest.raises(OSError, match=sentence) as caught:
            save(path)
        assert len(str(caught.value)) < 1000
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("path", "error"), [(3, TypeError), (b"s", TypeError), ("", ValueError), ("a\0b", ValueError)]
)
def test_what_is_no_path_is_a_sentence(path: Path, error: type[Exception]) -> None:
    for save in SAVERS.values():
        with pytest.raises(error, match="path"):
            save(path)


def test_names_as_long_as_the_system_takes_are_fine(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127, "lock", "content"):
        assert put(tmp_path / name).read_text() == "new"
        assert list(tmp_path.iterdir()) == [tmp_path / name]
        (tmp_path / name).unlink()


def test_a_bad_place_is_said_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = hw.explore(SCORES)
    for name in ("figure.png", "figure.svg", "page.render"):
        monkeypatch.setattr(f"headwidget.display.{name}", lambda *_, **__: pytest.fail("drawn"))
    for save in (explorer.to_html, explorer.to_png, explorer.to_svg):
        with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
            save(tmp_path / "no" / "s")

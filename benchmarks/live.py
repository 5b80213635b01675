"""The lab's part, in a real JupyterLab on the embedded model: a chunk landed to painted,
what streaming costs a run, a prompt typed to painted.

Python's clock and Chromium's are the same machine's. A busy machine slows all of it:
the load stands beside.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.browser import both, chromium, kept, load
from headwidget.live import pacer
from headwidget.scoring.portions import YOUNG
from tests.browser.conftest import Kernel, jupyter, run_notebook
from tests.browser.hosts import Server, wait_until

PROMPTS, BATCH, CHUNKS, REPEATS = 120, 4, 16, 3
SHOWN, GAP = 20, 0.5
THREADS = "[t.name for t in __import__('threading').enumerate() if t.name == 'headwidget']"
MOST_SLOWER, MOST_TYPED, PAUSE = 0.05, 300, 180
WORDS = (
    "The capital of France is Paris and the capital of Italy is Rome and the capital of "
    "Spain is Madrid and the capital of Germany is Berlin and of Japan it"
)

CODE = f"""
import asyncio, time, headwidget as hw, numpy as np
from headwidget.scoring import batch
model = hw.load()
batch.PROMPTS = {BATCH}  # small batches: many chunks, all alike
lab = hw.live(model, [hw.tasks.suite("math-syntax")[1]], method="gradient", prompts={PROMPTS})
sent, painted, landed = [], [], []
runner = lab._runner
show, heard, picture = lab._show, lab._on_message, runner._picture

def showing(scores, final):
    sent.append(time.time())
    show(scores, final)

def hearing(widget, content, buffers):
    if content.get("ask") == "painted":
        painted.append(content["at"] / 1000)
    heard(widget, content, buffers)

def every_second(prepared, job, *, first=False):
    landed.append(time.perf_counter())
    if len(landed) % 2:
        picture(prepared, job, first=True)

async def show_many(what, count, gap):
    for i in range(count):
        what(i)
        await asyncio.sleep(gap)

def rest(i):
    pass

def show_one(i):
    values = np.random.default_rng(i).normal(0, 1, (20, *model.shape)).astype("f4")
    arrays = dict.fromkeys(lab.asked, values)
    showing(hw.HeadScores.from_arrays(arrays, method="gradient", signed=True), final=False)

runner._show, lab._on_message = lambda: showing, hearing

async def run(chunks, pictures):
    sent.clear(), painted.clear(), landed.clear()
    runner._picture = pictures
    await lab.run(prompts=chunks * {BATCH}).done
lab
"""

STUDENT = """
import headwidget as hw
lab = hw.live(hw.load(), prompts=6)
painted, hear = [], lab._on_message

def hearing(widget, content, buffers):
    if content.get("ask") == "painted":
        painted.append(content["at"] / 1000)
    hear(widget, content, buffers)

lab._on_message = hearing
lab
"""
MOST_FIRST_CELLS, MOST_APART = 1500, 1000  # ms

# From a click on Run to the frame in which the first cell stands.
_FIRST_CELLS = """async () => {
    const view = document.querySelector('.hw-view');
    const empty = () => view.classList.contains('hw-unscored-all');
    const start = performance.now();
    document.querySelector('.hw-run .hw-go').click();
    const changed = (now) => new Promise((done) => {
        if (now()) return done();
        const look = () => { if (now()) { observer.disconnect(); done(); } };
        const observer = new MutationObserver(look);
        observer.observe(view, { attributes: true });
    });
    // The scores of the run before are cleared; where the next ones come within the same frame,
    // that is never painted, and the number is at most too large.
    await Promise.race([changed(empty), new Promise((done) => setTimeout(done, 500))]);
    await changed(() => !empty());
    await new Promise((done) => requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = done;
        port2.postMessage(0);
    }));
    return performance.now() - start;
}"""

# From a key to the frame in which the predictions of the new text stand.
_TYPE = """async (text) => {
    const panel = document.querySelector('.hw-prompt');
    const box = panel.querySelector('textarea');
    const seen = new Promise((done) => new MutationObserver((_, observer) => {
        if (panel.dataset.read !== text) return;
        observer.disconnect();
        requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => done(performance.now());
            port2.postMessage(0);
        });
    }).observe(panel, { attributes: true }));
    box.value = text;
    const start = performance.now();
    box.dispatchEvent(new Event('input', { bubbles: true }));
    return (await seen) - start;
}"""


def show() -> None:
    """Print the table."""
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter(Path(folder)) as server,
        chromium() as browser,
    ):
        page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        kernel = run_notebook(page, server, server.write(CODE), seconds=180)
        print(f"JupyterLab, batches of {BATCH} prompts, load {load()} as this starts.\n")
        print("| what | median | p95 or each | promise | kept |\n|---|---:|---|---|---|")
        extra = costs(kernel)
        line(
            "what a picture costs a run, ms: chunks with one over their neighbours without",
            extra,
            "",
            None,
        )
        apart, delays = landing(kernel)
        line("pictures apart in a run, ms", apart, "", None)
        line(
            "so pictures slow a run of a minute by this share",
            [of_a_minute(statistics.median(extra), statistics.median(apart))],
            " ",
            MOST_SLOWER,
            digits=3,
        )
        used = cores(kernel)
        line(
            "a core's ms that a picture takes in kernel, server and browser together",
            used,
            ", ".join(f"{ms:.0f}" for ms in used),
            None,
        )
        line(
            "so they slow a run of a minute by this share at most, had all of it to wait",
            [of_a_minute(statistics.median(used), statistics.median(apart))],
            " ",
            MOST_SLOWER,
            digits=3,
        )
        line("chunk landed to painted, ms", delays, "", None)
        typed, read = typing(page, kernel)
        line(
            f"prompt typed to painted, ms, without the {PAUSE} ms of waiting for the next key",
            typed,
            "",
            None,
        )
        line(
            "of that in the kernel (one forward of 32 tokens, predictions, ten maps), ms",
            read,
            "",
            MOST_TYPED,
        )
        kernel.close()
        page.evaluate("() => window.testPanel.sessionContext.shutdown()")
        student(page, server)
        print(f"\nLoad {load()} as this ends.\n")


def of_a_minute(cost: float, apart: float) -> float:
    """The share of a minute that pictures of ``cost`` ms take, ``apart`` ms apart while it is
    young; later the pacer gives them a share."""
    young = cost / apart * pacer.YOUNG
    return (young + pacer.SHARE * (60 - pacer.YOUNG)) / 60


def student(page: Page, server: Server) -> None:
    """Two tasks of six prompts, gradient: how soon cells come, and how far pictures are apart."""
    kernel = run_notebook(page, server, server.write(STUDENT), seconds=180)
    kernel.until(THREADS, lambda names: names == [], 60)  # what is done while the lab is idle
    first, apart = [], []
    for _ in range(REPEATS):
        kernel.run("painted.clear()")
        first.append(page.evaluate(_FIRST_CELLS))
        kernel.until("lab.state", lambda state: state == "done", 300)
        times = kernel.value("painted")
        young = [at for at in times if at - times[0] < YOUNG]
        apart += [1000 * (after - before) for before, after in itertools.pairwise(young)]
    each = ", ".join(f"{ms:.0f}" for ms in first)
    line("a click on Run to the first cell painted, ms", first, each, MOST_FIRST_CELLS)
    line("pictures apart in a run's first ten seconds, ms", apart, "", MOST_APART)
    kernel.close()
    page.evaluate("() => window.testPanel.sessionContext.shutdown()")


def costs(kernel: Kernel) -> list[float]:
    """ms that a chunk takes longer when a picture is sent as it begins than the chunks
    before and after it: the machine's own speed moves more than that."""
    longer = []
    for _ in range(REPEATS):
        ask(kernel, f"run({PROMPTS // BATCH}, every_second)")
        times = kernel.value("landed")
        taken = [
            1000 * (after - before) for before, after in itertools.pairwise(times)
        ]  # a picture goes with the first, the third, …
        longer += [
            taken[i] - (taken[i - 1] + taken[i + 1]) / 2 for i in range(2, len(taken) - 1, 2)
        ]
    return longer


def cores(kernel: Kernel) -> list[float]:
    """ms of a core that a picture takes in all processes together: the kernel, the server,
    the browser. What they take idle is taken off."""

    def taken(what: str) -> float:
        before = _cpu()
        kernel.run(f"doing = asyncio.ensure_future(show_many({what}, {SHOWN}, {GAP}))")
        time.sleep(SHOWN * GAP + 1)
        return 1000 * (_cpu() - before) / SHOWN

    kernel.until(THREADS, lambda names: names == [], 60)
    return [taken("show_one") - taken("rest") for _ in range(REPEATS)]


def _cpu() -> float:
    """Seconds of a core that Jupyter's and Chromium's processes have taken (Linux)."""
    total = 0
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and any(
                name in (process / "cmdline").read_text()
                for name in ("jupyter", "ipykernel", "chrom")
            ):
                user, system = (process / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
                total += int(user) + int(system)
    return total / os.sysconf("SC_CLK_TCK")


def landing(kernel: Kernel) -> tuple[list[float], list[float]]:
    """ms between two pictures of a run, and from the call that encodes what has landed to
    the browser's word that it was painted; those overtaken left out."""
    ask(kernel, f"run({CHUNKS}, picture)")
    wait_until(lambda: kernel.value("len(painted)") > 1, "a picture")
    sent, painted = kernel.value("[sent, painted]")
    delays = [
        1000 * (at - max(start for start in sent if start < at))
        for at in painted
        if any(start < at for start in sent)
    ]
    return [1000 * (after - before) for before, after in itertools.pairwise(sent[1:-1])], delays


def ask(kernel: Kernel, what: str) -> None:
    """Let the kernel do something that leaves it free meanwhile: it hears what the browser says."""
    kernel.run(f"import asyncio; doing = asyncio.ensure_future({what})")
    for _ in range(600):
        time.sleep(0.5)  # asking takes the kernel's time, too
        if kernel.value("doing.done()"):
            return
    raise TimeoutError(what)


def typing(page: Page, kernel: Kernel) -> tuple[list[float], list[float]]:
    words, typed, read = WORDS.split(), [], []
    for last in range(len(words) - 8, len(words)):
        typed.append(page.evaluate(_TYPE, " ".join(words[: last + 1])) - PAUSE)
        read.append(kernel.value("lab.reading['ms']"))
    return typed[1:], read[1:]


def line(
    what: str, numbers: Sequence[float], each: str, most: float | None, *, digits: int = 0
) -> None:
    median = statistics.median(numbers)
    beside = each or f"{both(numbers)[1]} (p95 of {len(numbers)})"
    promise = f"<= {most:g} | {kept(median, most)}" if most else " | "
    print(f"| {what} | {median:.{digits}f} | {beside} | {promise} |", flush=True)

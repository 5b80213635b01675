"""The lab's part, in a real JupyterLab on the embedded model: a chunk landed to painted, what streaming costs a run, a prompt typed to painted.

Python's clock and Chromium's are the same machine's. A busy machine slows all of it: the load stands beside.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.browser import both, chromium, kept, load
from tests.browser.conftest import Kernel, jupyter, run_notebook, wait_until

ROUNDS, PROMPTS, CHUNKS = 5, 16, 4
MOST_SLOWER, MOST_TYPED, PAUSE = 1.05, 300, 180
WORDS = (
    "The capital of France is Paris and the capital of Italy is Rome and the capital of Spain is Madrid and the capital of Germany is Berlin and of Japan it"
)

CODE = f"""
import time, headwidget as hw
from headwidget import batch
model = hw.load()
batch.PROMPTS = {PROMPTS // CHUNKS}  # small batches: many chunks
tasks = [task.sample({PROMPTS}, seed=0) for task in hw.tasks.suite("math-syntax")]
lab = hw.live(model, tasks, method="gradient", prompts=None)
sent, painted = [], []
show, heard, picture = lab._show, lab._heard, lab._picture

def showing(scores, *, final):
    sent.append(time.time())
    show(scores, final=final)

def hearing(widget, content, buffers):
    if content.get("ask") == "painted":
        painted.append(content["at"] / 1000)
    heard(widget, content, buffers)

lab.on_msg(heard, remove=True)
lab._show = showing
lab.on_msg(hearing)

def run(pictures):
    lab._picture = picture if pictures else lambda *args, **options: None
    start = time.perf_counter()
    lab.run().wait()
    return time.perf_counter() - start
lab
"""

# From a key to the frame in which the predictions of the new text stand.
_TYPE = """async (text) => {
    const [box, next] = ['.hw-prompt textarea', '.hw-next'].map((name) => document.querySelector(name));
    const seen = new Promise((done) => new MutationObserver((_, observer) => {
        observer.disconnect();
        requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => done(performance.now()); port2.postMessage(0); });
    }).observe(next, { childList: true }));
    box.value = text;
    const start = performance.now();
    box.dispatchEvent(new Event('input', { bubbles: true }));
    return (await seen) - start;
}"""


def show() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder, jupyter(Path(folder)) as server, chromium() as browser:
        page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        kernel = run_notebook(page, server, server.write(CODE), seconds=180)
        print(f"JupyterLab, {PROMPTS} prompts of two tasks in batches of {PROMPTS // CHUNKS}, load {load()} as this starts.\n")
        print("| what | median | p95 or each | promise | kept |\n|---|---:|---|---|---|")
        ratios = slower(kernel)
        line("a run that streams, over one that sends no pictures", ratios, " ".join(f"{r:.3f}" for r in ratios), MOST_SLOWER, digits=3)
        line("chunk landed to painted, ms", landed(kernel), "", None)
        typed, read = typing(page, kernel)
        line(f"prompt typed to painted, ms, without the {PAUSE} ms of waiting for the next key", typed, "", None)
        line("of that in the kernel (one forward of 32 tokens, predictions, ten maps), ms", read, "", MOST_TYPED)
        print(f"\nLoad {load()} as this ends.\n")
        kernel.close()
        page.evaluate("() => window.testPanel.sessionContext.shutdown()")


def slower(kernel: Kernel) -> list[float]:
    """Time with pictures over time without, in turn."""
    kernel.run("run(True); run(False)")
    return [kernel.value("(lambda without, streams: streams / without)(run(False), run(True))") for _ in range(ROUNDS)]


def landed(kernel: Kernel) -> list[float]:
    """ms from the call that encodes what has landed to the browser's word that it was painted; pictures that another overtook are left out."""
    kernel.run("sent.clear(); painted.clear(); run(True); run(True); import time; time.sleep(1)")
    wait_until(lambda: kernel.value("len(painted)") > 0, "a picture")
    sent, painted = kernel.value("[sent, painted]")
    found = []
    for at in painted:
        before = [one for one in sent if one < at]
        if before:
            found.append(1000 * (at - before[-1]))
    return found


def typing(page: Page, kernel: Kernel) -> tuple[list[float], list[float]]:
    words, typed, read = WORDS.split(), [], []
    for last in range(len(words) - 8, len(words)):
        typed.append(page.evaluate(_TYPE, " ".join(words[: last + 1])) - PAUSE)
        read.append(kernel.until("lab.reading.get('ms')", lambda ms: ms is not None))
    return typed[1:], read[1:]


def line(what: str, found: Sequence[float], each: str, most: float | None, *, digits: int = 0) -> None:
    median = statistics.median(found)
    beside = each or f"{both(found)[1]} (p95 of {len(found)})"
    print(f"| {what} | {median:.{digits}f} | {beside} | {f'<= {most:g}' if most else ''} | {kept(median, most) if most else ''} |", flush=True)

"""A real Chromium, a real Jupyter server with folders of its own, and a second client that
reads variables in the kernel."""

from __future__ import annotations

import ast
import json
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import headwidget as hw

from .explorer_page import ExplorerPage, open_page
from .hosts import PATIENCE, Server, free_port, serving, wait_until

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    "apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "notebook-extension/tracker": {
        "windowingMode": "none"
    },  # every output is drawn, also below the fold
}
READY = ".hw-root[data-ready='1']"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    assert path, "these tests need Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(1000 * PATIENCE)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with jupyter(tmp_path_factory.mktemp("lab")) as started:
        yield started


@contextmanager
def jupyter(base: Path) -> Iterator[Server]:
    """One Jupyter server for JupyterLab (/lab) and Notebook 7 (/notebooks)."""
    for name, content in SETTINGS.items():
        file = base / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    port, token = free_port(), secrets.token_hex(16)
    command = [
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
    ]
    command += [
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={base / 'root'}",
        f"--IdentityProvider.token={token}",
    ]
    command += [
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
    ]
    url = f"http://127.0.0.1:{port}"
    with serving(base, command, f"{url}/api?token={token}"):
        yield Server(url, token, base / "root", base / "runtime")


class Kernel:
    """The kernel behind a page, through a client of our own: what Python really holds."""

    def __init__(self, connection: Path) -> None:
        self.client = BlockingKernelClient(connection_file=str(connection))
        self.client.load_connection_file()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=2 * PATIENCE)

    def run(self, code: str, **expressions: str) -> dict[str, Any]:
        """Run code, then evaluate expressions to literals."""
        reply = self.client.execute(
            code,
            store_history=False,
            user_expressions=expressions,
            reply=True,
            timeout=2 * PATIENCE,
        )["content"]
        assert reply["status"] == "ok", "\n".join(reply.get("traceback", [str(reply)]))
        out = {}
        for name, result in reply["user_expressions"].items():
            assert result["status"] == "ok", result
            out[name] = ast.literal_eval(result["data"]["text/plain"])
        return out

    def value(self, expression: str) -> Any:
        return self.run("", it=expression)["it"]

    def until(self, expression: str, fine: Callable[[Any], bool], seconds: float = PATIENCE) -> Any:
        """The expression's value once it is fine."""
        seen: list[Any] = [None]

        def check() -> bool:
            seen[0] = self.value(expression)
            return fine(seen[0])

        try:
            wait_until(check, f"{expression} in the kernel", seconds)
        except pytest.fail.Exception:
            pytest.fail(f"{expression} in the kernel is {seen[0]!r} after {seconds:g} s")
        return seen[0]

    def close(self) -> None:
        self.client.stop_channels()


# How a notebook's panel is got, by the application that shows it.
_PANEL = {
    "lab": """async (app, path) => {
        const panel = await app.commands.execute('docmanager:open', { path, factory: 'Notebook' });
        app.shell.collapseLeft();
        return panel;
    }""",
    "notebooks": "async (app) => app.shell.currentWidget",
}
_OPEN = """async (path) => {
    const app = window.jupyterapp;
    await app.restored;
    const panel = await (%s)(app, path);
    await panel.context.ready;
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
    await panel.revealed;
    window.testPanel = panel;
    return panel.sessionContext.session.kernel.id;
}"""
_RUN_ALL = """() => {
    window.testDone = false;
    const done = () => { window.testDone = true; };
    window.jupyterapp.commands.execute('notebook:run-all-cells').then(done);
}"""

_WRONG = """() => {
    const cells = Array.from(window.testPanel.model.cells).filter((cell) => cell.type === 'code');
    const outputs = cells.flatMap((cell) => cell.outputs.toJSON());
    const errors = outputs.filter((output) => output.output_type === 'error');
    return errors.map((error) => error.traceback.join('\\n'));
}"""


def open_in(page: Page, server: Server, path: str, *, app: str = "lab") -> Kernel:
    """Open a notebook in an application (a key of ``_PANEL``) and run nothing; gives its kernel."""
    page.goto(
        f"{server.url}/lab?token={server.token}&reset"
        if app == "lab"
        else f"{server.url}/{app}/{path}?token={server.token}"
    )
    page.wait_for_function("() => window.jupyterapp", timeout=2000 * PATIENCE)
    return Kernel(server.runtime / f"kernel-{page.evaluate(_OPEN % _PANEL[app], path)}.json")


def run_notebook(
    page: Page, server: Server, path: str, *, app: str = "lab", seconds: float = 2 * PATIENCE
) -> Kernel:
    """The same, and run all its cells and wait for the widget's first drawing."""
    kernel = open_in(page, server, path, app=app)
    page.evaluate(_RUN_ALL)

    def drawn() -> bool:
        if wrong := page.evaluate(_WRONG):
            pytest.fail(f"{path} failed:\n{wrong[0]}")
        return bool(page.evaluate("() => window.testDone")) and page.locator(READY).count() > 0

    wait_until(drawn, f"the cells of {path} and its widget", seconds)
    page.locator(READY).first.scroll_into_view_if_needed()
    return kernel


# A server that has just restarted a kernel may refuse once to shut it down.
_SHUT_DOWN = """async () => {
    const shutDown = () => window.testPanel.sessionContext.shutdown();
    try {
        await shutDown();
    } catch (error) {
        await new Promise((done) => setTimeout(done, 2000));
        await shutDown();
    }
}"""


@pytest.fixture
def open_notebook(page: Page, server: Server) -> Iterator[Callable[..., Kernel]]:
    """``run_notebook`` for this test's page, cleaned up after it: kernels shut down and
    clients closed."""
    kernels: list[Kernel] = []

    def run(path: str, **options: Any) -> Kernel:
        kernels.append(run_notebook(page, server, path, **options))
        return kernels[-1]

    yield run
    for kernel in kernels:
        kernel.close()
    if kernels:
        page.evaluate(_SHUT_DOWN)


Show = Callable[..., ExplorerPage]


@pytest.fixture
def show(context: BrowserContext, tmp_path: Path) -> Iterator[Show]:
    """An explorer's page; nothing may go wrong in it."""

    def open_explorer(scores: hw.HeadScores, **traits: Any) -> ExplorerPage:
        path = hw.explore(scores, **traits).to_html(tmp_path / "heads.html")
        view, _, _ = open_page(context, path)
        pages.append(view)
        return view

    pages: list[ExplorerPage] = []
    yield open_explorer
    assert [view.wrong for view in pages] == [[]] * len(pages)

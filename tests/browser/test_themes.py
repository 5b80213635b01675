"""The colours of every host: its variables, light and dark, decide the widget's scheme and
keep its text readable."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

import headwidget as hw
from tests.support import made_up

from .explorer_page import contrast, open_page
from .hosts import wait_until

# Each host's own variables, with the values it has by default.
HOSTS = {
    "JupyterLab light": (
        "light",
        {
            "--jp-layout-color1": "white",
            "--jp-ui-font-color1": "rgba(0, 0, 0, 0.87)",
            "--jp-brand-color1": "#1976d2",
        },
    ),
    "JupyterLab dark": (
        "dark",
        {
            "--jp-layout-color1": "#111111",
            "--jp-ui-font-color1": "rgba(255, 255, 255, 1)",
            "--jp-brand-color1": "#2196f3",
        },
    ),
    "VS Code light": (
        "light",
        {
            "--vscode-editor-background": "#ffffff",
            "--vscode-foreground": "#3b3b3b",
            "--vscode-focusBorder": "#005fb8",
        },
    ),
    "VS Code dark": (
        "dark",
        {
            "--vscode-editor-background": "#1f1f1f",
            "--vscode-foreground": "#cccccc",
            "--vscode-focusBorder": "#0078d4",
        },
    ),
    "Colab light": (
        "light",
        {"--colab-primary-surface-color": "#ffffff", "--colab-primary-text-color": "#212121"},
    ),
    "Colab dark": (
        "dark",
        {"--colab-primary-surface-color": "#383838", "--colab-primary-text-color": "#d5d5d5"},
    ),
    "marimo light": (
        "light",
        {"--background": "hsl(0 0% 100%)", "--foreground": "hsl(222.2 47.4% 11.2%)"},
    ),
    "marimo dark": (
        "dark",
        {"--background": "hsl(174 15% 10%)", "--foreground": "hsl(213 31% 91%)"},
    ),
}
TEXTS = (
    "map-name",
    "tick",
    "about",
    "selected",
    "unit",
    "count",
    "choice-name",
    "chip",
    "view-tab",
    "menu .hw-icon",
    "value",
    "bar-title",
    "label-x",
    "off",
    "table-name",
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scores = made_up.scores(8, 6, tasks=3, runs=6, signed=True)
    return hw.explore(scores, threshold=0.004, selected=[(1, 1)]).to_html(
        tmp_path_factory.mktemp("themes") / "p.html"
    )


def styled(variables: dict[str, str]) -> str:
    background = next(
        value
        for name, value in variables.items()
        if "background" in name or "surface" in name or "layout" in name
    )
    listed = "; ".join(f"{name}: {value}" for name, value in variables.items())
    return f":root {{ {listed} }} html, body {{ background: {background} !important; }}"


# The page's policy refuses a style element that is not its own; this is none.
_ADOPT = """(text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
}"""


@pytest.mark.parametrize("host", HOSTS)
def test_a_hosts_colours_give_the_scheme_and_text_that_can_be_read(
    context: BrowserContext, path: Path, host: str
) -> None:
    scheme, variables = HOSTS[host]
    other_host = host.replace(scheme, {"light": "dark", "dark": "light"}[scheme])
    view, _, wrong = open_page(context, path)
    start = view.cells()
    assert view.root.get_attribute("data-scheme") == "light"
    # a host may change its theme while the widget is there
    view.page.evaluate(_ADOPT, styled(HOSTS[other_host][1]))
    wait_until(
        lambda: view.root.get_attribute("data-scheme") == HOSTS[other_host][0], "the other scheme"
    )
    view.page.evaluate(_ADOPT, styled(variables))
    wait_until(lambda: view.root.get_attribute("data-scheme") == scheme, "the scheme")
    view.drawn()
    assert (view.cells() == start) == (scheme == "light"), "the diverging colours follow"
    view.page.mouse.move(2, 2)
    for name in TEXTS:
        assert contrast(view.page, f".hw-{name}:visible") >= 4.5, name
    view.root.locator(".hw-chip").first.click()
    view.drawn()
    assert contrast(view.page, ".hw-chip[aria-pressed=false]") >= 4.5, "a hidden task's chip"
    view.hover(2, 2)
    wait_until(view.card, "the card")
    for name in (
        "inspected-name",
        "inspected-note",
        "card-note",
        "card-value",
        "card-interval",
        "card-rank",
        "card-task",
        "card-from",
    ):
        assert contrast(view.page, f".hw-{name}") >= 4.5, name
    view.open_menu("About")
    for name in ("about-name", "about-text"):
        assert contrast(view.page, f".hw-{name}:visible") >= 4.5, name
    view.press("Escape", "?")
    assert contrast(view.page, ".hw-key-text") >= 4.5
    view.press("Escape")
    view.show_view("Categories")
    for name in ("legend-name", "legend-count", "legend-note"):
        if view.root.locator(f".hw-{name}:visible").count():
            assert contrast(view.page, f".hw-{name}:visible") >= 4.5, name
    assert wrong == []

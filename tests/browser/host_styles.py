"""How the widget's parts are drawn, to hold one host against another: a host's own rules for
buttons, tables or lists must not reach them."""

from __future__ import annotations

from typing import Any

from .explorer_page import ExplorerPage

# Colours and the font's family are the host's on purpose; sizes that follow from a text's width
# differ with the font.
PROPERTIES = """
    display position float box-sizing
    font-size font-style font-weight letter-spacing line-height text-align text-decoration-line
    text-indent text-overflow text-transform white-space word-spacing vertical-align
    margin-top margin-right margin-bottom margin-left
    padding-top padding-right padding-bottom padding-left
    border-top-width border-right-width border-bottom-width border-left-width
    border-top-style border-bottom-style border-top-left-radius border-bottom-right-radius
    min-height max-height min-width max-width
    box-shadow text-shadow list-style-type opacity overflow-x overflow-y appearance
""".split()

_STYLES = """(root, properties) => {
    const styles = {};
    for (const el of root.querySelectorAll('*')) {
        const names = Array.from(el.classList).filter((name) => name.startsWith('hw-'));
        if (!names.length || !el.checkVisibility()) continue;
        const key = `${el.tagName.toLowerCase()}.${names.join('.')}`;
        if (styles[key]) continue;
        const style = getComputedStyle(el);
        const colour = /(rgba?|color)\\([^)]*\\)/g;
        const value = (name) => style.getPropertyValue(name).replace(colour, 'colour');
        styles[key] = Object.fromEntries(properties.map((name) => [name, value(name)]));
    }
    return styles;
}"""


def styles(view: ExplorerPage) -> dict[str, dict[str, str]]:
    """The computed style of the first visible element of every kind, with its menus open."""
    found: dict[str, dict[str, str]] = {}

    def look() -> None:
        view.drawn()
        seen: dict[str, dict[str, str]] = view.root.evaluate(_STYLES, PROPERTIES)
        for kind, style in seen.items():
            found.setdefault(kind, style)

    look()
    for menu in ("About", "Display", "Save"):
        view.open_menu(menu)
        look()
        view.press("Escape")
    return found


def differences(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """What is drawn in another way: lines with the element, the property and both values."""
    return [
        f"{kind} {name}: {here[kind][name]} here, {there[kind][name]} there"
        for kind in here.keys() & there.keys()
        for name in here[kind]
        if here[kind][name] != there[kind][name]
    ]

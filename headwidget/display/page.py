"""An explorer as one HTML file that opens from disk.

It holds the built front end and the scores, and loads nothing from the network. The browser
makes the same page, without a kernel: its twin is ``js/display/page_file.ts``, and
``tests/golden/page.json`` holds the two together.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from headwidget.display.assets import asset
from headwidget.scores import provenance, validation
from headwidget.scores.whole_file import write_whole

if TYPE_CHECKING:
    from headwidget.display.explorer import ExplorerBase

_POLICY = (
    "default-src 'none'",  # nothing is loaded
    "script-src '{script_hash}'",
    "style-src '{style_hash}'",
    "img-src data:",  # the drawing that Save turns into a PNG
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",  # no text becomes HTML or code
    "trusted-types 'none'",
)
"""What the browser allows the page: its own script and style, each by its hash, and no other."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<main id="headwidget"></main>
<footer>{provenance}</footer>
<script type="application/json" id="headwidget-state">{state}</script>
<script type="module">{script}</script>
</body>
</html>
"""

_STYLE = """
:root { color-scheme: light dark; }
body {
  max-width: 1240px; margin: 0 auto; padding: 28px 24px;
  font: 14px/1.5 system-ui, sans-serif; color: CanvasText; background: Canvas;
}
h1 { margin: 0 4px 8px; font-size: 21px; line-height: 1.25; overflow-wrap: anywhere; }
footer {
  margin: 20px 4px 0; font-size: 12px; overflow-wrap: anywhere;
  color: color-mix(in srgb, currentColor 64%, transparent);
}
#headwidget .hw-model { display: none; } /* the title says it */
"""


def write(explorer: ExplorerBase, path: str | Path, *, title: str | None = None) -> Path:
    """Write the explorer's page to ``path``: complete, or not at all. Gives the path back."""
    return write_whole(
        path, lambda temporary: temporary.write_bytes(render(explorer, title=title).encode())
    )


def render(explorer: ExplorerBase, *, title: str | None = None) -> str:
    """The page as text."""
    if title:
        validation.name(title, "the title")
    model = explorer.shown.record.model or ""
    header, buffer = explorer.encoded
    state = {"_header": header, "buffer": _packed(buffer), **explorer.page_state()}
    return text(
        title=title or (f"Attention heads of {model}" if model else "Attention heads"),
        footer=provenance.line(explorer.shown),
        css=asset("widget.css"),
        script=asset("widget.js"),
        state=json.dumps(state, ensure_ascii=False, allow_nan=False),
    )


def text(*, title: str, footer: str, css: str, script: str, state: str) -> str:
    """The page from its texts; ``state`` is JSON."""
    style, script = _closed(_STYLE + css), _closed(script)
    return _PAGE.format(
        policy="; ".join(_POLICY).format(script_hash=_hash(script), style_hash=_hash(style)),
        title=html.escape(title),
        style=style,
        provenance=html.escape(footer),
        # In JSON a "<" stands only inside strings, where it may be escaped: no name can end
        # the script.
        state=state.replace("<", "\\u003c"),
        script=script,
    )


def _hash(text: str) -> str:
    """How a policy names the script or style that has this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _packed(buffer: bytes) -> str:
    """The buffer deflated, as base64.

    The filtered strategy packs byte planes (:mod:`headwidget.display.wire`) a few percent
    smaller.
    """
    deflate = zlib.compressobj(level=9, strategy=zlib.Z_FILTERED)
    return base64.b64encode(deflate.compress(buffer) + deflate.flush()).decode("ascii")


def _closed(text: str) -> str:
    """Code that cannot end the element it stands in."""
    return re.sub(r"</(script|style)", r"<\\/\1", text, flags=re.IGNORECASE)

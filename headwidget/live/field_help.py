"""The first sentence of each field's docstring in a dataclass, read from its source.

Python does not keep docstrings below attributes. The source is there for modules, and for
cells of a notebook, whose lines IPython puts into ``linecache``.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable
from typing import Any


@functools.lru_cache(maxsize=256)
def field_help(options: type, *beside: Callable[..., Any]) -> dict[str, str]:
    """The first sentence about each field; a field without one is missing.

    Where the source of the class is not known, it is looked for in the notebook's cells that
    its methods, or the functions ``beside`` it, come from.

    >>> from headwidget.methods.ablation import Ablation
    >>> field_help(Ablation)["where"]
    'At all positions, or only where the answer is predicted.'
    """
    definition = _definition(options, beside)
    helps: dict[str, str] = {}
    if definition is None:
        return helps
    for statement, following in zip(definition.body, definition.body[1:]):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = _string(following)
            if text is not None:
                helps[statement.target.id] = first_sentence(text)
    return helps


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line.

    >>> first_sentence("How many heads, e.g. 8.\\n    The rest is left out.")
    'How many heads, e.g. 8.'
    """
    return re.split(r"(?<=[.?!])\s+(?=[A-Z`])", " ".join(text.split()), maxsplit=1)[0]


def _definition(options: type, beside: tuple[Callable[..., Any], ...]) -> ast.ClassDef | None:
    """The class statement of a dataclass, or None where no source has it."""
    for source in _sources(options, beside):
        try:
            statements = ast.walk(ast.parse(textwrap.dedent(source)))
        except (SyntaxError, ValueError):  # such as a cell with a magic command
            continue
        for statement in statements:
            if isinstance(statement, ast.ClassDef) and statement.name == options.__name__:
                return statement
    return None


def _sources(options: type, beside: tuple[Callable[..., Any], ...]) -> list[str]:
    """Texts that may have the class statement, the likeliest first."""
    sources = []
    try:
        sources.append(inspect.getsource(options))
    except (OSError, TypeError):  # a class of a notebook, or of the prompt
        pass
    for function in (*vars(options).values(), *beside):
        code = getattr(function, "__code__", None)
        if code is not None:
            sources.append("".join(linecache.getlines(code.co_filename)))
    return sources


def _string(statement: ast.stmt) -> str | None:
    """The text of a statement that is a string and nothing else."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return value if isinstance(value, str) else None
    return None

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


def field_help(options: type, *beside: Callable[..., Any]) -> dict[str, str]:
    """The first sentence about each field; a field without one is missing.

    Where the source of the class is not known, it is looked for in the notebook's cells that
    its methods, or the functions ``beside`` it, come from.

    >>> from headwidget.methods.ablation import Ablation
    >>> field_help(Ablation)["where"]
    'At all positions, or only where the answer is predicted.'
    """
    codes = [getattr(function, "__code__", None) for function in beside]
    files = [code.co_filename for code in codes if code is not None]
    return _field_help(options, tuple(files))


@functools.lru_cache(maxsize=256)
def _field_help(options: type, files: tuple[str, ...]) -> dict[str, str]:
    definition = _definition(options, files)
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


def _definition(options: type, files: tuple[str, ...]) -> ast.ClassDef | None:
    """The class statement of a dataclass, or None where no source has it."""
    for source in _sources(options, files):
        try:
            statements = ast.walk(ast.parse(textwrap.dedent(source)))
        except (SyntaxError, ValueError):  # such as a cell with a magic command
            continue
        for statement in statements:
            if isinstance(statement, ast.ClassDef) and statement.name == options.__name__:
                return statement
    return None


def _sources(options: type, files: tuple[str, ...]) -> list[str]:
    """Texts that may have the class statement, the likeliest first."""
    sources = []
    try:
        sources.append(inspect.getsource(options))
    except (OSError, TypeError):  # a class of a notebook, or of the prompt
        pass
    codes = [getattr(function, "__code__", None) for function in vars(options).values()]
    of_methods = [code.co_filename for code in codes if code is not None]
    for file in (*of_methods, *files):
        sources.append("".join(linecache.getlines(file)))
    return sources


def _string(statement: ast.stmt) -> str | None:
    """The text of a statement that is a string and nothing else."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return value if isinstance(value, str) else None
    return None

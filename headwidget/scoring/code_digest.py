"""Tells apart what functions of a user's run, so that a method that was edited is noticed."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from typing import Any

_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def digest(function: Any) -> str:
    """A short text that differs where a function's code does, or that of what it calls.

    Functions, classes and plain values of its own module count as well; other modules do not.

    >>> digest(lambda x: x + 1) == digest(lambda x: x + 1), digest(lambda x: x) == digest(abs)
    (True, False)
    """
    hashed, seen = hashlib.blake2b(digest_size=8), set[int]()
    waiting: list[Any] = [function]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, functools.partial):
            hashed.update(_plain((value.args, sorted(value.keywords.items()))))
            waiting.append(value.func)
        elif isinstance(value, types.FunctionType):
            waiting += _of_function(value, hashed)
        elif isinstance(value, types.MethodType):
            waiting.append(value.__func__)
        elif isinstance(value, type):
            members = sorted(vars(value).items())
            hashed.update(_plain([(name, part) for name, part in members if name[:2] != "__"]))
            waiting += [inspect.unwrap(part) for _, part in reversed(members) if _is_code(part)]
        elif callable(value) and not _is_code(value):  # an instance with __call__
            waiting.append(type(value))
    return hashed.hexdigest()


def _is_code(value: Any) -> bool:
    return isinstance(inspect.unwrap(value) if callable(value) else value, types.FunctionType)


def _of_function(function: types.FunctionType, hashed: Any) -> list[Any]:
    """Add a function; gives what it uses of its own module."""
    hashed.update(_plain((function.__defaults__, function.__kwdefaults__)))
    used: dict[str, Any] = {}
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        hashed.update(code.co_code)
        hashed.update(_plain((code.co_names, code.co_varnames, code.co_freevars)))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                codes.append(constant)
            else:
                hashed.update(_plain(constant))
        used |= {name: function.__globals__.get(name) for name in code.co_names}
    try:
        used |= inspect.getclosurevars(function).nonlocals
    except ValueError:  # a variable that has no value yet
        pass
    hashed.update(_plain([(n, v) for n, v in sorted(used.items()) if isinstance(v, _PLAIN)]))
    module = function.__module__
    called = [used[name] for name in sorted(used, reverse=True)]
    return [value for value in called if getattr(value, "__module__", None) == module]


def _plain(value: Any) -> bytes:
    """Values as text that is the same in every process: sets in order, objects without address."""
    if isinstance(value, (tuple, list)):
        return b"(" + b",".join(map(_plain, value)) + b")"
    if isinstance(value, (set, frozenset)):
        return b"{" + b",".join(sorted(map(_plain, value))) + b"}"
    if isinstance(value, _PLAIN):
        return repr(value).encode(errors="surrogatepass")
    return type(value).__qualname__.encode()

"""Dataclasses that are read from JSON and written to it, field by field, each of a checked kind.

Reading never raises: a value of another kind than its field's, and a key that is no field,
stay in ``extra`` and are written back as they were (but for fields that are always written:
a value of another kind is replaced by an empty one). Items of another kind inside a list or a
mapping are left out. So files of older and newer versions,
and what users put there themselves, pass through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Self = TypeVar("Self", bound="JsonFields")
Reader = Callable[[Any], Any]
"""Gives a field's value from a JSON value, or OTHER_KIND."""
OTHER_KIND: Any = object()


def text(value: Any) -> Any:
    """A string."""
    return value if isinstance(value, str) else OTHER_KIND


def number(value: Any) -> Any:
    """An integer or a float, and not a bool."""
    return value if type(value) in (int, float) else OTHER_KIND


def whole(value: Any) -> Any:
    """An integer, and not a bool; 4.0 counts as 4."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else OTHER_KIND


def flag(value: Any) -> Any:
    """A bool."""
    return value if isinstance(value, bool) else OTHER_KIND


def json_object(value: Any) -> Any:
    """A mapping whose content is not looked at."""
    return dict(value) if isinstance(value, Mapping) else OTHER_KIND


def one_of(*allowed: str) -> Reader:
    """One of a few strings."""
    return lambda value: value if isinstance(value, str) and value in allowed else OTHER_KIND


def list_of(read: Reader) -> Reader:
    """A list, as a tuple; items of another kind are left out."""

    def read_list(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return OTHER_KIND
        items = (read(item) for item in value)
        return tuple(item for item in items if item is not OTHER_KIND)

    return read_list


def dict_of(read: Reader) -> Reader:
    """A mapping by name, as a dict; values of another kind are left out."""

    def read_dict(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return OTHER_KIND
        items = ((name, read(item)) for name, item in value.items())
        return {name: item for name, item in items if item is not OTHER_KIND}

    return read_dict


def fields_of(cls: type[JsonFields]) -> Reader:
    """A mapping, as an instance of ``cls``."""
    return lambda value: cls.from_json(value) if isinstance(value, Mapping) else OTHER_KIND


def optional(read: Reader) -> Any:
    """A dataclass field that is None where nothing is known."""
    return dataclasses.field(default=None, metadata={"read": read})


def several(read: Reader, *, always: bool = False) -> Any:
    """A dataclass field that is a tuple, empty where nothing is known.

    ``always``: it is written also where it is empty.
    """
    return dataclasses.field(default=(), metadata={"read": list_of(read), "always": always})


def by_name(read: Reader, *, always: bool = False) -> Any:
    """A dataclass field that is a dict, empty where nothing is known.

    ``always``: it is written also where it is empty.
    """
    metadata = {"read": dict_of(read), "always": always}
    return dataclasses.field(default_factory=dict, metadata=metadata)


@dataclass(frozen=True)
class JsonFields:
    """The base of such dataclasses."""

    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, kw_only=True)
    """What was read and has no place among the fields: by its key, as it was."""

    @classmethod
    def from_json(cls: type[Self], content: Mapping[str, Any]) -> Self:
        """Read a mapping of JSON."""
        values: dict[str, Any] = {}
        extra = dict(content)
        for field in dataclasses.fields(cls):
            if field.name == "extra" or field.name not in content:
                continue
            value = field.metadata["read"](content[field.name])
            if value is not OTHER_KIND and _written(field, value):
                values[field.name] = value
            if field.name in values or field.metadata.get("always"):
                del extra[field.name]
        return cls(**values, extra=extra)

    def to_json(self, *, unknown: bool | Collection[str] = False) -> dict[str, Any]:
        """A mapping of JSON that ``from_json`` reads back.

        ``unknown``: fields where nothing is known are written too, as null or empty; all of
        them, or those that are named.
        """
        named = [field.name for field in dataclasses.fields(self)] if unknown is True else unknown
        content = dict(self.extra)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name != "extra" and (
                (named and field.name in named) or _written(field, value)
            ):
                content[field.name] = _plain(value)
        return content

    def as_written(self, name: str) -> Any:
        """A field's value as JSON holds it, of whatever kind it is; None where it is not there."""
        field = self.__dataclass_fields__[name]
        value = getattr(self, name)
        return _plain(value) if _written(field, value) else self.extra.get(name)


def _written(field: dataclasses.Field[Any], value: Any) -> bool:
    """Fields where nothing is known are not written."""
    if field.metadata.get("always"):
        return True
    content = value.to_json() if isinstance(value, JsonFields) else value
    return not (content is None or (isinstance(content, (tuple, dict, Mapping)) and not content))


def _plain(value: Any) -> Any:
    if isinstance(value, JsonFields):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value

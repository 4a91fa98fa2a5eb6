"""Reads JSON objects of other programs, and checks their kind, version, keys and types.

A format is a dataclass, or a table from each key to its type. The types are those of annotations:
``str``, ``int``, ``float``, ``bool``, ``None``, ``list``, ``tuple``, ``Mapping``, ``Literal``,
unions of them, and other dataclasses. Whatever does not fit ends in one sentence that names the
file, the key, the value, and what the value should be.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pulsar_ml.errors import BadRecordError

T = TypeVar("T")
NAMES = {
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    types.NoneType: "null",
}
MOST_SHOWN = 60  # characters of a wrong value


def decode(text: str | bytes, what: str) -> Any:
    """Return the JSON value of ``text``; BadRecordError when it is not JSON.

    ``what`` names the file or the value in messages, here and below, as ``"the record x.json"``.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecordError(
            f"{what} is not JSON, so it is damaged or truncated: {json_problem(error)}"
        ) from None


def json_problem(error: Exception) -> str:
    """Return what is wrong with a text that is no JSON, in the same words on each interpreter."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def read_object(
    text: str | bytes,
    what: str,
    *,
    kind: str = "",
    kind_key: str = "kind",
    versions: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the JSON object of ``text`` without its kind and version, once those were checked.

    ``versions`` are those that this release reads, in ascending order; none for an object without a
    version. Raises BadRecordError.
    """
    return check_object(decode(text, what), what, kind=kind, kind_key=kind_key, versions=versions)


def check_object(
    content: object,
    what: str,
    *,
    kind: str = "",
    kind_key: str = "kind",
    versions: Sequence[int] = (),
) -> dict[str, Any]:
    """Return a decoded object without its kind and version, as :func:`read_object` does."""
    if not isinstance(content, dict):
        raise BadRecordError(f"{what} is {shown(content)}; it should be a JSON object")
    content = dict(content)
    if kind and (found := content.pop(kind_key, None)) != kind:
        raise mismatch(what, kind_key, found, json.dumps(kind))
    if versions:
        check_version(content.pop("version", None), what, versions)
    return content


def check_version(version: object, what: str, versions: Sequence[int]) -> None:
    """Raise BadRecordError unless ``version`` is one of ``versions``."""
    if type(version) is int and version > versions[-1]:
        raise BadRecordError(
            f"{what} has version {shown(version)}, this release reads up to {versions[-1]}; "
            "use a newer pulsar_ml"
        )
    if type(version) is not int or version not in versions:
        raise mismatch(what, "version", version, " or ".join(map(str, versions)))


def build(cls: type[T], content: object, what: str, *, optional: Set[str] | None = None) -> T:
    """Return the dataclass ``cls`` with the values of an object.

    ``optional`` keys may be missing; by default those of fields with a default. Raises
    BadRecordError for an unknown or missing key and for a value of another type.
    """
    hints, defaults = fields_of(cls)  # type: ignore[arg-type]
    values = check_keys(content, hints, what, optional=defaults if optional is None else optional)
    return cls(**values)


@functools.cache
def fields_of(cls: type) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the types of a dataclass's fields, and the names of those with a default."""
    fields = dataclasses.fields(cls)
    hints = get_type_hints(cls)
    missing = dataclasses.MISSING
    defaults = frozenset(
        field.name
        for field in fields
        if field.default is not missing or field.default_factory is not missing
    )
    return {field.name: hints[field.name] for field in fields}, defaults


def check_keys(
    content: object,
    types_of: Mapping[str, Any],
    what: str,
    *,
    optional: Set[str] = frozenset(),
    others: bool = False,
) -> dict[str, Any]:
    """Return the values of ``types_of``'s keys, converted to their types.

    ``optional`` keys may be missing, and are then missing in the result. ``others``: the object may
    have keys beside these, which are left out. Raises BadRecordError.
    """
    if not isinstance(content, dict):
        raise BadRecordError(f"{what} is {shown(content)}; it should be a JSON object")
    for name in content:
        if name not in types_of and not others:
            from difflib import get_close_matches  # slow to import, rarely needed

            nearest = get_close_matches(name, types_of, 1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise BadRecordError(f"{what} has an unknown key {shown(name)}{hint}")
    for name, kind in types_of.items():
        if name not in content and name not in optional:
            raise BadRecordError(f"{what}: {name} is missing; it should be {expected(kind)}")
    return {
        name: convert(content[name], kind, what, name)
        for name, kind in types_of.items()
        if name in content
    }


def convert(value: Any, kind: Any, what: str, key: str) -> Any:
    """Return ``value`` as the type ``kind``: lists as tuples where the annotation is one."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return value
    if origin in (Union, types.UnionType):
        for one in arguments:
            if fits(value, one):
                return convert(value, one, what, key)
        raise mismatch(what, key, value, expected(kind))
    if not fits(value, kind):
        raise mismatch(what, key, value, expected(kind))
    if dataclasses.is_dataclass(kind):
        return build(kind, value, f"{what}, {key},")  # type: ignore[arg-type]
    if origin is tuple and arguments[-1] is not ...:
        if len(value) != len(arguments):
            raise mismatch(what, key, value, expected(kind))
        return tuple(
            convert(item, one, what, key) for item, one in zip(value, arguments, strict=True)
        )
    if origin in (tuple, list, Sequence):
        items = [convert(item, arguments[0], what, f"{key}[{at}]") for at, item in enumerate(value)]
        return items if origin is list else tuple(items)
    if origin in (dict, Mapping):
        return {
            name: convert(item, arguments[1], what, f"{key}[{name!r:.{MOST_SHOWN}}]")
            for name, item in value.items()
        }
    return value


def fits(value: object, kind: Any) -> bool:
    """Compare the outermost type: a truth value is no integer, and an integer is a number."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in get_args(kind))
    if dataclasses.is_dataclass(kind) or origin in (dict, Mapping):
        return isinstance(value, dict)
    if origin in (list, tuple, Sequence):
        return isinstance(value, list | tuple)
    if origin is float:
        return type(value) in (int, float)
    return type(value) is origin


def expected(kind: Any) -> str:
    """Describe a type in words: ``an integer``, ``a text or null``, ``a list of texts``."""
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(map(expected, arguments))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in (list, tuple, Sequence) and arguments:
        items = [expected(one) for one in arguments if one is not ...]
        if origin is tuple and arguments[-1] is not ...:
            return f"a list of {len(items)}: {', '.join(items)}"
        return f"a list, each item {items[0]}"
    if origin in (list, tuple, Sequence):
        return "a list"
    if origin in (dict, Mapping) and arguments:
        return f"an object, each value {expected(arguments[1])}"
    return NAMES.get(origin, "an object")


def shown(value: object) -> str:
    """Return a value as the file has it, cut to a bounded length."""
    return f"{json.dumps(value, default=repr):.{MOST_SHOWN}}"


def mismatch(what: str, key: str, value: object, should_be: str) -> BadRecordError:
    """Return the error for a wrong value of one key."""
    return BadRecordError(f"{what}: {key} is {shown(value)}; it should be {should_be}")

"""The public face of the core: its classes, and the parameters of their members."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pulsar_ml import _core

# Operators and protocols besides the named members: each takes an object and an argument.
PROTOCOLS: dict[str, Callable[[Any, Any], object]] = {
    "bool": lambda thing, _: bool(thing),
    "len": lambda thing, _: len(thing),
    "repr": lambda thing, _: repr(thing),
    "hash": lambda thing, _: hash(thing),
    "next": lambda thing, _: next(thing),
    "iter": lambda thing, _: list(thing),
    "bytes": lambda thing, _: bytes(thing),
    "memoryview": lambda thing, _: memoryview(thing),
    "in": lambda thing, argument: argument in thing,
    "==": lambda thing, argument: thing == argument,
    "<": lambda thing, argument: thing < argument,
    "[]": lambda thing, argument: thing[argument],
    "with": lambda thing, _: thing.__enter__(),
    "end of with": lambda thing, argument: thing.__exit__(argument, None, None),
    "call": lambda thing, argument: thing(argument),
    "class": lambda thing, argument: type(thing)(argument),
    "new": lambda thing, _: cast(Any, type(thing)).__new__(type(thing)),
    "init": lambda thing, argument: type(thing).__init__(thing, argument),
    "reduce": lambda thing, _: thing.__reduce_ex__(4),
    "set": lambda thing, argument: setattr(thing, "max_size", argument),
    "delete": lambda thing, _: delattr(thing, "name"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a member; ``by_name``: it can only be passed by its name."""

    name: str
    by_name: bool
    has_default: bool


def stub_parameters() -> dict[tuple[str, str], list[Parameter]]:
    """The parameters of each constructor and method in the stub of the core."""
    text = Path(str(_core.__file__)).with_name("_core.pyi").read_text()
    found: dict[tuple[str, str], list[Parameter]] = {}
    for owner in ast.parse(text).body:
        if not isinstance(owner, ast.ClassDef):
            continue
        for function in owner.body:
            if not isinstance(function, ast.FunctionDef):
                continue
            arguments = function.args
            plain = [*arguments.posonlyargs, *arguments.args][1:]
            required = len(plain) - len(arguments.defaults)
            found[owner.name, function.name] = [
                Parameter(each.arg, False, number >= required) for number, each in enumerate(plain)
            ] + [
                Parameter(each.arg, True, default is not None)
                for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            ]
    return found


STUBS = stub_parameters()


def classes() -> list[type]:
    """The public compiled classes of the core."""
    return [
        each
        for name, each in sorted(vars(_core).items())
        if isinstance(each, type)
        and each.__module__ == _core.__name__
        and name[0] != "_"
        and not issubclass(each, tuple)
    ]


def members(kind: type) -> list[str]:
    """The names of the public attributes and methods of a class."""
    return [name for name in dir(kind) if not name.startswith("_")]


def parameters(kind: type, member: str) -> list[Parameter]:
    """The parameters of a constructor (``__new__``) or a method."""
    if (kind.__name__, member) in STUBS:
        return STUBS[kind.__name__, member]
    try:
        signature = inspect.signature(getattr(kind, member))
    except (TypeError, ValueError):
        return [Parameter("argument", False, False)]
    return [
        Parameter(
            each.name, each.kind is each.KEYWORD_ONLY, each.default is not inspect.Parameter.empty
        )
        for each in list(signature.parameters.values())[1:]
        if each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
    ]

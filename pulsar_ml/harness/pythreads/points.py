"""Chooses the instructions of Python functions that are steps of an execution.

A step is an instruction that reads or writes what threads can share: an attribute, an item, a
global variable, a variable of an enclosing function, or a container that native code works on.
"""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import CodeType

from pulsar_ml.harness.pythreads.depths import stack_depths

# The kinds of steps, with the same numbers as in native/codes.c.
KINDS = {
    "LOAD_ATTR": 1,
    "LOAD_METHOD": 1,
    "STORE_ATTR": 2,
    "DELETE_ATTR": 2,
    "BINARY_SUBSCR": 3,
    "STORE_SUBSCR": 4,
    "DELETE_SUBSCR": 5,
    "LOAD_GLOBAL": 6,
    "STORE_GLOBAL": 7,
    "DELETE_GLOBAL": 7,
    "LOAD_DEREF": 8,
    "STORE_DEREF": 9,
    "BINARY_SLICE": 3,
    "STORE_SLICE": 4,
    "PRECALL" if sys.version_info < (3, 12) else "CALL": 10,
    "CALL_KW": 10,
    "FOR_ITER": 11,
    "CONTAINS_OP": 12,
    "BINARY_OP": 13,
}
CALLS = ("PRECALL", "CALL", "CALL_KW")
ITEM_KINDS = (3, 4, 5)
FIRST_IN_PLACE = 13  # operand of BINARY_OP: this one and later ones are +=, -= and so on
SUBSCRIPT = 26  # but for this one of 3.14, which reads an item
INSTALLED = ("site-packages", "dist-packages")
PACKAGE = str(Path(__file__).resolve().parents[2])

Described = tuple[bytes, list[int], list[int], list[str | None]]


@functools.cache
def library_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages."""
    names = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(sorted({str(Path(name).resolve()) for name in names}))


class CodeUnderTest:
    """Decides which code objects are under test: those outside the standard library, installed
    packages and this package.

    ``also`` names modules or packages that are under test although they are installed.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self.libraries = library_folders()
        self.also = tuple(folder for name in also for folder in folders_of(name))
        self.known: dict[str, bool] = {}

    def is_under_test(self, file: str) -> bool:
        found = self.known.get(file)
        if found is None:
            path = str(Path(file).resolve()) if not file.startswith("<") else file
            installed = path.startswith((*self.libraries, PACKAGE)) or any(
                f"/{folder}/" in path for folder in INSTALLED
            )
            found = not file.startswith("<frozen") and (not installed or path.startswith(self.also))
            self.known[file] = found
        return found

    def describe(self, code: CodeType) -> Described | None:
        """Return kind, number, depth and name of each instruction; None unless under test."""
        if not self.is_under_test(code.co_filename):
            return None
        size = len(code.co_code) // 2
        depths = stack_depths(code)
        kinds, numbers = bytearray(size), [0] * size
        names: list[str | None] = [None] * size
        first = -1  # of the prefixes EXTENDED_ARG: the interpreter announces them, not what follows
        for each in dis.get_instructions(code):
            if each.opname == "EXTENDED_ARG":
                first = each.offset // 2 if first < 0 else first
                continue
            at, first = (each.offset // 2 if first < 0 else first), -1
            kind = KINDS.get(each.opname)
            if each.opname == "BINARY_OP":
                kind = kind_of_operation(each.arg or 0)
            if kind is None:
                continue
            kinds[at] = kind
            if each.opname == "CALL_KW":
                depths[at] -= 1  # the names are above the arguments
            if each.opname in CALLS or each.opname.endswith("_DEREF"):
                numbers[at] = each.arg or 0
            elif kind in ITEM_KINDS:
                numbers[at] = 3 if each.opname.endswith("_SLICE") else 2
            elif each.opname.startswith("DELETE_"):
                numbers[at] = 1
            if isinstance(each.argval, str) and kind not in (12, 13):
                names[at] = sys.intern(each.argval)
        return bytes(kinds), numbers, depths, names


def kind_of_operation(operand: int) -> int | None:
    """Return the kind of a BINARY_OP by its operand; None for one that is no step."""
    if operand == SUBSCRIPT:
        return KINDS["BINARY_SUBSCR"]
    return KINDS["BINARY_OP"] if operand >= FIRST_IN_PLACE else None


def folders_of(name: str) -> tuple[str, ...]:
    """Return the file of a module, and the folders of a package, by import."""
    from importlib.util import find_spec

    found = find_spec(name)
    if found is None:
        return ()
    places = list(found.submodule_search_locations or ())
    return tuple(str(Path(each).resolve()) for each in [*places, found.origin or ""] if each)

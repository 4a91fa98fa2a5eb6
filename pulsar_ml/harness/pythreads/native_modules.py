"""Names the native modules that a test calls, and finds the checked ones among them."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import FunctionType, ModuleType

from pulsar_ml.harness.functions.called import is_checked

OWN_AND_STANDARD = frozenset({*sys.stdlib_module_names, "builtins", "__main__", "pulsar_ml"})


class NativeModules:
    """The extension modules, besides the standard library's, whose functions a test called.

    A call of such a function is one step, unless its module is a checked one.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()

    def note(self, function: object) -> None:
        """Add the module of a callable; one of Python code and the standard library have none."""
        name = module_name(function)
        file = extension_file(sys.modules.get(name))
        if file is None and (isinstance(function, type) or is_python(function)):
            return
        if name.partition(".")[0] in OWN_AND_STANDARD or (file is not None and is_checked(file)):
            return
        self.names.add(name)

    def described(self) -> tuple[str, ...]:
        return tuple(sorted(self.names))


def is_python(function: object) -> bool:
    """True for a callable whose code is Python's."""
    code = getattr(function, "__func__", None) or type(function).__call__
    return isinstance(code, FunctionType) or isinstance(function, FunctionType)


def module_name(function: object) -> str:
    """Return the name of the module that defines a callable."""
    for owner in (function, getattr(function, "__objclass__", None)):
        if isinstance(name := getattr(owner, "__module__", None), str):
            return name
    bound = getattr(function, "__self__", function)
    return str(getattr(type(bound), "__module__", "builtins"))


def extension_file(module: ModuleType | None) -> Path | None:
    """Return the file of an extension module; None for others and the standard library's."""
    file = getattr(module, "__file__", None)
    return None if file is None else extension_path(file)


@cache
def extension_path(file: str) -> Path | None:
    """Return a module's file as a path; None if it is no extension or the standard library's."""
    if not file.endswith(tuple(EXTENSION_SUFFIXES)):
        return None
    return None if "lib-dynload" in Path(file).parts else Path(file)


def checked_modules() -> list[Path]:
    """Return the files of the checked modules that this process has loaded, but for our own."""
    files = [
        extension_file(module)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] != "pulsar_ml" and isinstance(module, ModuleType)
    ]
    return sorted({file for file in files if file is not None and is_checked(file)})


def identity_of(modules: list[Path]) -> bytes:
    """Return a digest of modules' files."""
    digest = hashlib.sha256()
    for file in modules:
        digest.update(file.read_bytes())
    return digest.digest()

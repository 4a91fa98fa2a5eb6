"""Makes a function of a checked module a subject: the engine's first thread calls it.

The table of the subject is filled here, so that nothing is built.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.functions._called import APPLY, APPLY_NATIVE, CHECK, DESTROY
from pulsar_ml.harness.subjects.subject import Subject, subject_at

ABI = 1  # PML_SUBJECT_ABI; subject_at() refuses a table of another one
HOOK = b"__tsan_func_entry"  # a symbol that every checked module needs


class Argument(ctypes.Structure):
    """PmlArgument of subject.h."""

    _fields_ = (("name", ctypes.c_char_p), ("low", ctypes.c_int64), ("high", ctypes.c_int64))


class NativeOperation(ctypes.Structure):
    """PmlOperation of subject.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("weight", ctypes.c_int32),
        ("role", ctypes.c_int32),
        ("n_arguments", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("arguments", Argument * 3),
    )


CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)


class Table(ctypes.Structure):
    """PmlSubject of subject.h."""

    _fields_ = (
        ("abi", ctypes.c_uint32),
        ("n_operations", ctypes.c_int32),
        ("n_settings", ctypes.c_int32),
        ("max_threads", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("summary", ctypes.c_char_p),
        ("operations", ctypes.POINTER(NativeOperation)),
        ("settings", ctypes.POINTER(Argument)),
        ("create", CREATE),
        ("apply", ctypes.c_void_p),
        ("check", ctypes.c_void_p),
        ("destroy", ctypes.c_void_p),
    )


def is_native(target: object) -> bool:
    """True for a function of an extension module; a function of Python is none."""
    return callable(target) and not inspect.isfunction(target) and not inspect.isclass(target)


@functools.cache
def is_checked(module: Path) -> bool:
    """True for an extension module that calls the engine."""
    return HOOK in module.read_bytes()


def module_of(function: Callable[[], object]) -> Path | None:
    """The file of the extension module that has a function."""
    module = getattr(function, "__self__", None)  # of a function in C; Cython's has none
    if not inspect.ismodule(module):
        module = sys.modules.get(str(getattr(function, "__module__", "")))
    file = getattr(module, "__file__", None) or getattr(
        getattr(module, "__spec__", None), "origin", None
    )
    return Path(file) if file else None


def function_subject(function: Callable[[], object]) -> Subject:
    """Return the subject whose only operation calls ``function``, which takes nothing.

    An exception that leaves it is its failure. Raises UsageError for a function that is not of a
    checked build.
    """
    import pulsar_ml.harness.engine  # noqa: F401

    name = str(getattr(function, "__name__", ""))
    path = module_of(function)
    if not name or path is None or path.suffix != ".so" or not is_checked(path):
        raise UsageError(
            f"{name or function!r} is no function of a checked module; load its module by "
            "load_checked(build_extension(..., checked=True))"
        )
    return table_subject(function, name, path.parent.name.rpartition("-")[2])


@functools.cache
def table_subject(function: Callable[[], object], name: str, build_id: str) -> Subject:
    create = CREATE(lambda settings, threads: id(function))
    return subject_of(name, build_id, create, APPLY, DESTROY, function)


def native_subject(name: str, build_id: str, create: int, destroy: int, owner: object) -> Subject:
    """Return the subject whose only operation calls the C function that ``create`` returns.

    ``create`` and ``destroy`` are addresses of callbacks that ``owner`` keeps loaded.
    """
    return subject_of(name, build_id, CREATE(create), APPLY_NATIVE, destroy, owner)


def subject_of(
    name: str, build_id: str, create: object, apply: int, destroy: int, owner: object
) -> Subject:
    operation = NativeOperation(b"test", 1)
    table = Table(
        ABI, 1, 0, 1, name.encode(), name.encode(), ctypes.pointer(operation), None,
        create, apply, CHECK, destroy,
    )  # fmt: skip
    return subject_at(ctypes.addressof(table), build_id, (table, operation, create, owner))

"""Each public class says what threads may do with one object, and calls that take no lock of the
structures take none in the binding."""

from __future__ import annotations

import re

import pytest

from pulsar_ml import _core
from tests import ROOT
from tests.face_fuzz.face import classes

SENTENCE = re.compile(r"any number of threads|one thread at a time", re.IGNORECASE)

# Methods by class that wait for no other thread, with a GIL or without one.
LOCK_FREE = {
    "BufferSlice": ("__len__", "__bool__"),
    "Entry": (
        "__getbuffer__", "__releasebuffer__", "__len__", "released", "ledger_id", "entry_id",
        "position", "data", "references", "expected_reads", "expect_read", "copy",
        "message_metadata", "initialize_message_metadata", "release",
    ),
    "RangeCache": ("closed", "size", "get", "__contains__", "count_misses"),
    "NamedCursors": ("is_empty", "has_durable_cursors", "data_version", "__len__", "__contains__"),
    "AckState": ("size",),
}  # fmt: skip
LOCK = re.compile(
    r"critical_section|with (?:self\.)?(?:naming|calling)\b|monitor_enter|\.acquire\("
)

SOURCES = "\n".join(
    path.read_text() for path in sorted((ROOT / "pulsar_ml" / "binding").rglob("*.pxi"))
)


def silent(kinds: list[type]) -> list[str]:
    """The classes whose docstrings say nothing of threads."""
    return [kind.__name__ for kind in kinds if not SENTENCE.search(" ".join(doc_of(kind).split()))]


def doc_of(kind: type) -> str:
    return kind.__doc__ or ""


def body(kind: str, method: str, sources: str) -> str:
    """The source of a method, without its comments."""
    of_class = re.search(rf"^cdef class {kind}\b.*?(?=^\S|\Z)", sources, re.DOTALL | re.MULTILINE)
    assert of_class, kind
    found = re.search(
        rf"^    def {method}\(.*?(?=^    (?:def|cdef|@)|\Z)", of_class[0], re.DOTALL | re.MULTILINE
    )
    assert found, (kind, method)
    return re.sub(r"#.*", "", found[0])


def locked(sources: str) -> list[str]:
    """The methods of the table whose source takes a lock."""
    return [
        f"{kind}.{method}"
        for kind, methods in LOCK_FREE.items()
        for method in methods
        if LOCK.search(body(kind, method, sources))
    ]


def test_each_public_class_says_what_threads_may_do_with_an_object() -> None:
    assert silent(classes()) == []


def test_a_class_that_says_nothing_of_threads_is_noticed() -> None:
    class Silent:
        """A limit on reads. Raises UsageError."""

    assert silent([Silent, _core.Entry]) == ["Silent"]


def test_calls_without_a_lock_take_none_in_the_binding() -> None:
    assert locked(SOURCES) == []


@pytest.mark.parametrize(
    "lock", ["with cython.critical_section(self):", "with self.naming:", "self.lock.acquire()"]
)
def test_a_lock_in_such_a_call_is_noticed(lock: str) -> None:
    before = "        self.check_open()\n        cdef NativePosition key = to_stored(position"
    assert SOURCES.count(before) == 3
    assert "RangeCache.get" in locked(SOURCES.replace(before, f"        {lock}\n{before}"))

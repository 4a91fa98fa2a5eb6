"""Names likely causes of executions that differ when they are repeated."""

from __future__ import annotations

import datetime
import os
import resource
import time
from collections.abc import Iterable
from types import BuiltinFunctionType
from typing import Any

# Native functions whose results the engine does not decide, with what they read.
READS: dict[Any, str] = {
    id: "id(), an address,",
    time.process_time: "time.process_time(), the processor's time,",
    time.process_time_ns: "time.process_time_ns(), the processor's time,",
    time.thread_time: "time.thread_time(), the processor's time,",
    time.localtime: "time.localtime(), the system's clock,",
    time.gmtime: "time.gmtime(), the system's clock,",
    time.strftime: "time.strftime(), the system's clock,",
    os.getloadavg: "os.getloadavg(), the system's load,",
    os.stat: "os.stat(), the file system,",
    os.listdir: "os.listdir(), the file system,",
    resource.getrusage: "resource.getrusage(), the process's resources,",
}
OF_DATES = {"now": "the system's clock", "utcnow": "the system's clock", "today": "the day"}
STATE = "something that the test keeps from one execution to the next, such as a global or a cache"


def cause_of(seen: object) -> str:
    """Return why ``seen``, a native callable or a set, may differ from time to time; or ""."""
    if isinstance(seen, (set, frozenset)):
        return cause_in_set(seen)
    if isinstance(seen, BuiltinFunctionType):
        if seen in READS:
            return READS[seen]
        owner, name = seen.__self__, seen.__name__
        if name in OF_DATES and isinstance(owner, type) and issubclass(owner, datetime.date):
            return f"{owner.__name__}.{name}(), {OF_DATES[name]},"
        if name == "__hash__" or seen is hash:
            return "hash(), which may follow an address,"
    return ""


def cause_in_set(elements: Iterable[object]) -> str:
    """Return why the order of a set may differ: it follows addresses, or the seed of hashes."""
    kinds = {type(each) for each in elements}
    for kind in sorted(kinds, key=lambda each: each.__qualname__):
        if kind.__hash__ is object.__hash__:
            return (
                f"the order of a set of {kind.__qualname__} objects, which follows their addresses,"
            )
    return ""


def likely_cause(causes: Iterable[str]) -> str:
    """Describe the likely causes in one clause."""
    found = list(dict.fromkeys(causes))
    return f"likely cause: {'; or '.join(found) if found else STATE}"

"""The order in which structures take locks, read from the sources (I6, I101, I105).

The calls between ``stamped_lock_write(&wrapper.lock)`` and its unlock, and their callees, may take
no monitor and no second wrapper lock; nor may a read take either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests import ROOT

READS = ("range_cache_get", "range_cache_next", "range_cache_exists", "cache_manager_get")

# Calls that wait for other threads. A write section may take the directory's lock, for the first
# entry of a block of ids; a reader may wait for a write section.
WAITS = re.compile(
    r"\b(monitor_enter|condition_enter|condition_wait|wait_while_equal|stamped_lock_write)\(([^,)]*)"
)
ALLOWED = {("stamped_lock_write", "&directory.lock")}

FUNCTION = re.compile(
    r"^cdef inline [^\n(]*?\b(\w+)\(.*?\) noexcept nogil:\n(.*?)(?=^\S|\Z)",
    re.DOTALL | re.MULTILINE,
)
SECTION = re.compile(
    r"^( *)stamped_lock_write\(&wrapper\.lock\)\n(.*?)(?=^\1stamped_unlock_write\(&wrapper\.lock\)|\Z)",
    re.DOTALL | re.MULTILINE,
)


def functions(sources: Iterable[str]) -> dict[str, str]:
    """Bodies by name, comments left out."""
    return {
        match[1]: re.sub(r"#.*", "", match[2])
        for text in sources
        for match in FUNCTION.finditer(text)
    }


def reachable(body: str, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the waiting calls of a body and its callees: the calling function, and the call."""
    seen: set[str] = set()
    waiting = [("itself", body)]
    while waiting:
        name, text = waiting.pop()
        for match in WAITS.finditer(text):
            # What the waiting functions do inside is theirs.
            yield name, f"{match[1]}({match[2]})"
        for called in set(re.findall(r"\b(\w+)\(", WAITS.sub("", text))) & set(known) - seen:
            seen.add(called)
            waiting.append((called, known[called]))


def breaches(sources: Iterable[str]) -> list[str]:
    known = functions(sources)
    allowed = {f"{name}({lock})" for name, lock in ALLOWED}
    found = [
        f"a write section of {name} reaches {call} in {where}"
        for name, body in known.items()
        for section in SECTION.finditer(body)
        for where, call in reachable(section[2], known)
        if call not in allowed
    ]
    for name in READS:
        found += [
            f"the read {name} reaches {call} in {where}"
            for where, call in reachable(known.get(name, ""), known)
        ]
    return found


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return [path.read_text() for path in sorted((ROOT / "pulsar_ml" / "structures").glob("*.pxd"))]


def test_no_wrapper_lock_is_held_while_another_or_a_monitor_is_taken_and_no_read_takes_one(
    sources: list[str],
) -> None:
    assert breaches(sources) == []


def test_the_sections_and_reads_are_found(sources: list[str]) -> None:
    known = functions(sources)
    assert set(READS) <= set(known)
    assert sum(len(SECTION.findall(body)) for body in known.values()) >= 5
    assert any(("stamped_lock_write(&directory.lock)" in body) for body in known.values())


HEAD = "cdef inline void {}(T* t) noexcept nogil:\n"
SECTION_OF = (
    HEAD.format("put")
    + "    stamped_lock_write(&wrapper.lock)\n    {}\n    stamped_unlock_write(&wrapper.lock)\n\n\n"
)


@pytest.mark.parametrize(
    "wrong",
    [
        SECTION_OF.format("monitor_enter(&queue.monitor)"),
        SECTION_OF.format("help(t)") + HEAD.format("help") + "    deeper(t)\n\n\n" + HEAD.format("deeper")
        + "    monitor_enter(&queue.monitor)\n",
        SECTION_OF.format("stamped_lock_write(&other.lock)"),
        HEAD.format("range_cache_get") + "    stamped_lock_write(&wrapper.lock)\n",
        HEAD.format("range_cache_next") + "    help(t)\n\n\n" + HEAD.format("help")
        + "    condition_enter(c)\n",
    ],
)  # fmt: skip
def test_a_breach_is_noticed(wrong: str) -> None:
    assert breaches([wrong])


def test_what_is_right_is_no_breach() -> None:
    right = SECTION_OF.format("help(t)  # monitor_enter(&queue.monitor)") + HEAD.format("help")
    assert breaches([right + "    stamped_lock_write(&directory.lock)\n"]) == []
    after = SECTION_OF.format("pass").rstrip("\n") + "\n    monitor_enter(&queue.monitor)\n"
    assert breaches([after]) == []

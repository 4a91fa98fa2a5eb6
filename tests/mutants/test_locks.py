"""Ignored locks: the places of their switches."""

from __future__ import annotations

from stress.mutants.build import STRUCTURES
from stress.mutants.faults.locks import Lock, locks_of, places, with_switches

SOURCE = """\
cdef inline void begin(Thing* thing) noexcept nogil:
    monitor_enter(&thing.monitor)


cdef inline void end(Thing* thing) noexcept nogil:
    monitor_leave(&thing.monitor)


cdef inline bint both(Thing* thing) noexcept nogil:
    stamped_lock_write(&thing.lock)
    if thing.closed:
        stamped_unlock_write(&thing.lock)
        return False
    monitor_enter(&thing.monitor)
    monitor_leave(&thing.monitor)
    stamped_unlock_write(&thing.lock)
    return True
"""
END, LOCK, BOTH = (
    Lock("x", "end", "&thing.monitor"),
    Lock("x", "both", "&thing.lock"),
    Lock("x", "both", "&thing.monitor"),
)


def test_a_lock_taken_and_given_back_by_different_functions_is_one_place() -> None:
    assert set(places("x", SOURCE).values()) == {END, LOCK, BOTH}
    assert places("x", SOURCE)["begin", "&thing.monitor"] == END


def test_every_call_has_the_switch_of_its_lock() -> None:
    text = with_switches("x", SOURCE, SOURCE, {END: 7, LOCK: 8, BOTH: 9})
    assert text.count("    if pml_mutant != 7: monitor_enter(&thing.monitor)\n") == 1
    assert text.count("if pml_mutant != 8: ") == 3
    assert (
        "        if pml_mutant != 8: stamped_unlock_write(&thing.lock)\n        return False\n"
        in text
    )
    assert text.count("if pml_mutant != 9: ") == 2


def test_a_lock_of_a_mutant_alone_has_no_switch() -> None:
    mutated = SOURCE.replace(
        "    return True\n", "    monitor_enter(&thing.other)\n    return True\n"
    )
    assert "    monitor_enter(&thing.other)\n" in with_switches(
        "x", mutated, SOURCE, {END: 7, LOCK: 8, BOTH: 9}
    )


def test_every_lock_of_the_structures_is_one_of_them() -> None:
    found = {lock.id for path in STRUCTURES.glob("*.pxd") for lock in locks_of(path)}
    assert "lock:range_cache:range_cache_link:wrapper.lock" in found
    assert "lock:eviction_policy:eviction_run:policy.base.intake.monitor" in found
    assert len([name for name in found if name.startswith("lock:inflight_limiter:")]) >= 5

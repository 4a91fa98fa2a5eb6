"""Fibers own what belongs to a thread, and what happens once or together is modelled.

Each wrong program is found and named, each right one stays silent.
"""

from __future__ import annotations

import pytest

from tests.engine.locks.test_locks import COMPILERS, EXECUTIONS, FAULTS, built, run

# program: module, kinds of failure of which it may show any first, and a part of the message.
WRONG: dict[str, tuple[str, str | tuple[str, ...], str]] = {
    "local_shared": ("owned", "data race", ""),
    "local_outlived": ("owned", "use after free", ""),
    "once_by_hand": ("owned", ("data race", "invariant"), ""),
    "value_leaks": ("owned", "leak", ""),
    "meets_nobody": ("owned", ("data race", "invariant"), ""),
    "meets_too_many": ("owned", "deadlock", "waits for barrier"),
    "c11_unjoined": ("owned", "data race", ""),
    "python_kept": ("owned", "deadlock", "waits for futex"),
    "noted_not": ("owned", "data race", ""),
    "noted_half": ("owned", "data race", ""),
    "noted_readers": ("owned", "data race", ""),
    "cache_kept": ("owned_cpp", "leak", ""),
    "static_local_in_itself": ("owned_cpp", "lock misuse", "waits for itself"),
    "checked_by_hand": ("owned_cpp", "data race", ""),
    "promise_early": ("owned_cpp", "data race", ""),
    "promise_broken": ("owned_cpp", "invariant", ""),
    "promise_unkept": ("owned_cpp", "deadlock", "waits for futex"),
    "async_race": ("owned_cpp", "data race", ""),
    "barrier_left_out": ("owned_cpp", "data race", ""),
    "latch_short": ("owned_cpp", "deadlock", "waits for futex"),
    "not_joined": ("owned_cpp", "assertion", "std::terminate"),
    "kept_too_early": ("owned_cpp", "data race", ""),
    "pointer_bare": ("owned_cpp", "data race", ""),
    "aligned_freed": ("owned_cpp", ("data race", "use after free"), ""),
}
RIGHT = {
    "owned": (
        "locals local_shared errno rounding identity signal_stack once c11_once meets spin c11 "
        "python noted noted_old noted_lock noted_benign noted_ignored"
    ),
    "owned_cpp": (
        "local_objects local_threads cache thrown rethrown uncaught call_once call_once_throws "
        "static_local checked_by_hand promise task async barrier latch jthread timed_shared exit_notified "
        "kept_at_exit kept_unread kept_wrong kept_by_task joined_at_end pointer weak_pointer aligned strings"
    ),
}
FIXED = [(module, f"{name}_fixed") for module, names in RIGHT.items() for name in names.split()]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_found_and_named(name: str, compiler: str) -> None:
    module, kinds, message = WRONG[name]
    failure = run(module, name, compiler).failure
    assert failure is not None
    assert failure.kind in ((kinds,) if isinstance(kinds, str) else kinds)
    assert message in failure.message


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("module", "name"), FIXED)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_a_right_program_stays_silent(module: str, name: str, mode: str, compiler: str) -> None:
    done = run(module, name, compiler, mode=mode, faults=FAULTS, reuse="mixed")
    assert done.verdict == "clean", done.failure
    assert done.executions == EXECUTIONS
    assert done.statistics["cut"] == 0


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_the_engine_leaves_the_stack_of_a_thread_that_ended(mode: str, compiler: str) -> None:
    done = run("owned", "local_left", compiler, mode=mode)
    assert done.verdict == "clean", done.failure


# libstdc++ before 13 releases the lock in atomic<shared_ptr>::load() with a relaxed order: its
# plain read of the pointer races with the next store. The race is passed over, and counted.
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_race_in_the_atomic_shared_pointer_of_libstdcxx_is_named(compiler: str) -> None:
    done = run("owned_cpp", "atomic_pointer_fixed", compiler)
    known = built("owned_cpp", compiler).LIBSTDCXX < 13
    assert ["atomic<std::shared_ptr>" in text for text in done.passed_over] == [True] * known
    assert done.verdict == "clean", done.failure

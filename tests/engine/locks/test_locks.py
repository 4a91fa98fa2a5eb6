"""Locks, conditions, semaphores, futexes and threads of code under test are modelled: each wrong
program is found and named, each right one stays silent. In C, C++ and Cython, with every compiler
that is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.partition import Part, ReducedPart, divided
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT

HERE = Path(__file__).parent
SHARED = HERE.parent / "programs"
SOURCES = {
    "locks": ("c", "-std=gnu11"),
    "locks_cpp": ("c++", "-std=gnu++20"),
    "locks_cython": ("c++", "-std=gnu++17"),
    "owned": ("c", "-std=gnu11"),
    "owned_cpp": ("c++", "-std=gnu++20"),
}
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
EXECUTIONS = 3_000
FAULTS = ("spurious", "timeout")

# program: module, kind of failure, and a part of its message.
WRONG = {
    "unlocked": ("locks", "data race", ""),
    "try_ignored": ("locks", "data race", ""),
    "cycle_of_three": ("locks", "deadlock", "held by thread 1; thread 1 waits for mutex"),
    "lock_twice": ("locks", "lock misuse", "already holds"),
    "unlock_unheld": ("locks", "lock misuse", "does not hold"),
    "destroy_held": ("locks", "lock misuse", "destroyed while a thread holds it"),
    "mutex_seen": ("locks", "invariant", "still held"),
    "readers_seen": ("locks", "invariant", "still held"),
    "writer_seen": ("locks", "invariant", "still held"),
    "freed_held": ("locks", "lock misuse", "destroyed while a thread holds it"),
    "wake_lost": ("locks", "deadlock", "thread 1 waits for condition"),
    "wake_one_of_two": ("locks", "deadlock", "waits for condition"),
    "writer_reads": ("locks", "data race", ""),
    "upgrade": ("locks", "deadlock", "held by reader"),
    "rwlock_unheld": ("locks", "lock misuse", "does not hold"),
    "semaphore_ignored": ("locks", "data race", ""),
    "semaphore_looks": ("locks", "invariant", "between two looks"),
    "semaphore_polled": ("locks", "data race", ""),
    "semaphore_short": ("locks", "deadlock", "waits for semaphore"),
    "futex_lost": ("locks", "deadlock", "waits for futex"),
    "started_race": ("locks", "data race", ""),
    "joined_twice": ("locks", "lock misuse", "joined or detached before"),
    "many_started": ("locks", "data race", ""),
    "join_deadlock": ("locks", "deadlock", "waits for the end of thread"),
    "std_unlocked": ("locks_cpp", "data race", ""),
    "std_ab_ba": ("locks_cpp", "deadlock", "held by thread 1; thread 1 waits for mutex"),
    "std_wake_lost": ("locks_cpp", "deadlock", "thread 1 waits for condition"),
    "std_shared_reads": ("locks_cpp", "data race", ""),
    "std_thread_race": ("locks_cpp", "data race", ""),
    "std_notify_forgotten": ("locks_cpp", "deadlock", "thread 1 waits for futex"),
}
# Cython's mutex is a lock of pythread.h up to 3.12, and PyMutex afterwards.
PY_LOCK = "futex" if sys.version_info >= (3, 13) else "mutex"
WRONG |= {
    "pymutex_forgotten": ("locks_cython", "data race", ""),
    "pymutex_cpp_cycle": (
        "locks_cython",
        "deadlock",
        f"held by thread 1; thread 1 waits for {PY_LOCK}",
    ),
}
# program: module, and the fault without which it is right.
WRONG_WITH = {
    "wake_spurious": ("locks", "spurious"),
    "wake_late": ("locks", "timeout"),
    "timed_ignored": ("locks", "timeout"),
    "semaphore_late": ("locks", "timeout"),
    "std_wake_late": ("locks_cpp", "timeout"),
}
FIXED = {
    "locks": (
        "locked try timed cycle_of_three destroy_held mutex_seen readers_seen writer_seen freed_held "
        "wake_lost wake_late wake_nobody wake_two writer_writes readers_share upgrade semaphore "
        "semaphore_late semaphore_looks semaphore_polled semaphore_main futex started many_started "
        "join_deadlock"
    ),
    "locks_cpp": (
        "std_mutex std_recursive std_ab_ba std_wake_lost std_wake_late std_shared std_thread "
        "std_semaphore std_notify"
    ),
    "locks_cython": "pymutex cpp_mutex",
}
# Each measures how long it waited, so a wake-up without a cause is no fault to allow here.
TIMES = [
    "std_wait_for",
    "std_wait_until",
    "std_wait_steady",
    "std_acquire_for",
    "std_acquire_until",
    "std_sleep_for",
    "std_sleep_until",
    "std_try_lock_for",
    "std_try_lock_until",
    "std_try_lock_shared_for",
    "std_poll",
]
RIGHT = [(module, f"{name}_fixed") for module, names in FIXED.items() for name in names.split()]


@cache
def built(name: str, compiler: str) -> ModuleType:
    language, standard = SOURCES[name]
    digest = hashlib.sha256((ROOT / "pulsar_ml/harness/building/checked.py").read_bytes())
    for path in sorted([*HERE.glob("*.pyx"), *HERE.glob("*.h*"), *SHARED.glob("*.[hp]*")]):
        digest.update(path.read_bytes())
    folder = ROOT / "build" / "programs" / f"{compiler}-{digest.hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    flags = [standard, "-Wno-unused"]
    with open(folder / "lock", "w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if compiler == "clang":
            patch.setenv("CC", "clang")
            patch.setenv("CXX", "clang++")
            patch.setenv("LDSHARED", "clang -shared")
            patch.setenv("LDCXXSHARED", "clang++ -shared")
        path = build_extension(
            HERE / f"{name}.pyx",
            into=folder,
            checked=True,
            flags=flags,
            language=language,
            macros={"PML_BUILD_ID": '"programs"'},
        )
    return load_checked(path)


def run(
    module: str,
    name: str,
    compiler: str,
    *,
    seed: int = 1,
    executions: int = EXECUTIONS,
    **options: Any,
) -> Exploration:
    native = built(module, compiler)
    subject = native.SUBJECTS[name]
    program = Program.generate(subject, 0, threads=native.THREADS[name], operations=1, noise=False)
    done = explore(subject, program, executions=executions, seed=seed, **options)
    if done.failure is not None:
        assert done.failure.replay(subject).exact
    return done


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_found_and_named(name: str, compiler: str) -> None:
    module, kind, message = WRONG[name]
    failure = run(module, name, compiler).failure
    assert failure is not None
    assert failure.kind == kind
    assert message in failure.message


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", WRONG_WITH)
def test_spurious_wake_ups_and_time_outs_are_choices(name: str, compiler: str) -> None:
    module, fault = WRONG_WITH[name]
    assert run(module, name, compiler).failure is None
    assert run(module, name, compiler, faults=(fault,)).failure is not None


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("module", "name"), RIGHT)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_a_right_program_stays_silent(module: str, name: str, mode: str, compiler: str) -> None:
    done = run(module, name, compiler, mode=mode, faults=FAULTS, reuse="mixed")
    assert done.verdict == "clean", done.failure
    assert done.executions == EXECUTIONS
    assert done.statistics["cut"] == 0


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("mode", ["sc", "c11"])
@pytest.mark.parametrize("faults", [(), ("timeout",)])
def test_clocks_and_deadlines_of_the_library_agree(
    name: str, mode: str, faults: tuple[str, ...], compiler: str
) -> None:
    done = run("locks_cpp", f"{name}_fixed", compiler, mode=mode, faults=faults)
    assert done.verdict == "clean", done.failure
    assert done.executions == EXECUTIONS
    assert done.statistics["cut"] == 0


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_every_seed_finds_a_wait_for_an_atomic_without_a_notify(mode: str, compiler: str) -> None:
    # The library looks at the value twelve times, and four times with a yield, before it sleeps.
    enough = 10_000
    for seed in range(20):
        options: dict[str, Any] = {"mode": mode, "seed": seed, "executions": enough}
        failure = run("locks_cpp", "std_notify_forgotten", compiler, **options).failure
        assert failure is not None, seed
        assert failure.kind == "deadlock"
        assert "thread 1 waits for futex" in failure.message
        fixed = run("locks_cpp", "std_notify_fixed", compiler, mode=mode, seed=seed)
        assert fixed.verdict == "clean", fixed.failure


@pytest.mark.parametrize("compiler", COMPILERS)
def test_readers_hold_a_read_write_lock_together(compiler: str) -> None:
    run("locks", "readers_share_fixed", compiler)
    native = built("locks", compiler)
    assert native.outcome_count("readers_share_fixed", 1) > 0


# Value at the first look and at the second one, as two digits.
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_a_search_reaches_each_pair_of_values_of_a_semaphore(mode: str) -> None:
    native = built("locks", "gcc")
    counts = [native.outcome_count("semaphore_looks_fixed", pair) for pair in range(4)]
    done = run("locks", "semaphore_looks_fixed", "gcc", mode=mode, strategy="preemptions", bound=9)
    now = [native.outcome_count("semaphore_looks_fixed", pair) for pair in range(4)]
    assert done.exhausted
    assert done.statistics["classes"] == 3
    assert [after > before for before, after in zip(counts, now, strict=True)] == [
        True,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("name", "faults", "line"),
    [
        ("try_ignored", (), " fails: it is not free  locks.h"),
        ("timed_ignored", ("timeout",), " times out  locks.h"),
        ("semaphore_ignored", (), " fails: it is not free  locks.h"),
        ("semaphore_late", ("timeout",), " times out  locks.h"),
        ("semaphore_looks", (), "look at m0 -> 1"),
    ],
)
def test_a_trace_shows_what_did_not_get_its_lock(
    name: str, faults: tuple[str, ...], line: str
) -> None:
    found = run("locks", name, "gcc", faults=faults).failure
    assert found is not None
    assert line in found.describe(built("locks", "gcc").SUBJECTS[name], width=200)


def test_a_trace_of_a_lock_that_was_free_shows_no_failure() -> None:
    found = run("locks", "unlocked", "gcc").failure
    assert found is not None
    text = found.describe(built("locks", "gcc").SUBJECTS["unlocked"], width=200)
    assert "lock " in text
    assert "fails" not in text
    assert "times out" not in text


@pytest.mark.parametrize("name", ["mutex_seen", "readers_seen", "writer_seen", "destroy_held"])
@pytest.mark.parametrize("strategy", ["preemptions", "delays"])
def test_a_search_finds_a_late_unlock_also_in_parts(name: str, strategy: str) -> None:
    native = built("locks", "gcc")
    subject = native.SUBJECTS[name]
    program = Program.generate(subject, 0, threads=native.THREADS[name], operations=1, noise=False)
    options: dict[str, Any] = {"strategy": strategy, "bound": 3, "executions": 1}
    assert explore(subject, program, **{**options, "executions": 1_000}).failure is not None
    waiting: list[Part | ReducedPart] = [Part()]
    found = 0
    while waiting:
        done = explore(subject, program, part=waiting.pop(), **options)
        found += done.failure is not None
        if done.failure is None and done.rest is not None:
            waiting += divided([done.rest], 3)
    assert found

"""Twenty small programs as their authors would write them, each in a buggy and a mended variant.

The programs know nothing of the engine. Each bug is found in 20 of 20 seeds within the default
budget, and the mended variants are silent.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pytest

from pulsar_ml.harness.functions import LANGUAGES
from pulsar_ml.harness.functions.check import (
    EXECUTIONS,
    build_tests,
    check_function,
    replayed_text,
)
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from tests import ROOT
from tests.conftest import HAS_CXX

HERE = Path(__file__).parent / "programs"
BUILDS = ROOT / "build" / "functions"
SEEDS = range(20)
CLEAN_SEEDS = range(4)
CLEAN_EXECUTIONS = 1_500

# file: the kinds of failure that its bug may end in.
PROGRAMS = {
    "async_logger.cpp": {"assertion"},
    "barrier.c": {"deadlock", "livelock", "data race"},
    "chase_lev.cpp": {"assertion"},
    "cow_vector.cpp": {"assertion"},
    "event_count.cpp": {"deadlock"},
    "hand_over_hand.pyx": {"assertion"},
    "hash_set.pyx": {"invariant"},
    "lazy_init.cpp": {"data race"},
    "mailbox.c": {"deadlock"},
    "mcs_lock.c": {"deadlock", "livelock", "data race"},
    "michael_scott.cpp": {"assertion"},
    "mpmc_queue.cpp": {"data race"},
    "rcu_pointer.cpp": {"data race", "use after free"},
    "refcount.pyx": {"leak", "use after free", "data race", "double free"},
    "rwlock.c": {"data race"},
    "seqlock.c": {"assertion"},
    "spsc_ring.c": {"data race"},
    "thread_pool.cpp": {"deadlock"},
    "timer.pyx": {"invariant"},
    "treiber_stack.cpp": {"use after free", "data race"},
}
# The kinds of program that must be there, and their files.
KINDS = {
    "ring of one producer and one consumer": "spsc_ring.c",
    "ring of many producers and consumers": "mpmc_queue.cpp",
    "Treiber's stack with hazard pointers": "treiber_stack.cpp",
    "sequence lock": "seqlock.c",
    "reader-writer lock": "rwlock.c",
    "bounded work-stealing queue": "chase_lev.cpp",
    "lazy initialisation": "lazy_init.cpp",
    "condition variable with a lost wake-up": "mailbox.c",
    "shutdown of a thread pool": "thread_pool.cpp",
    "reference count": "refcount.pyx",
    "copy-on-write vector": "cow_vector.cpp",
    "event count": "event_count.cpp",
    "barrier": "barrier.c",
    "asynchronous logger": "async_logger.cpp",
    "lock-free hash set": "hash_set.pyx",
    "pointer protected by read-copy-update": "rcu_pointer.cpp",
}
# Words by which a program would show that it knows where it runs.
OURS = re.compile(r"pulsar|pml|\bcheck:|check\.h|interleav|sanitize|tsan|\bengine\b", re.IGNORECASE)
INCLUDE = re.compile(
    r'#include\s*"([^"]+)"|cdef extern from "([^<"]+)"|cimport\s+(\w+)|from (\S+) cimport'
)
# An extension with C++ in it needs that compiler, too.
NEED_CXX = ("refcount.pyx", "hash_set.pyx")
BUILDABLE = [
    name for name in PROGRAMS if HAS_CXX or not (name.endswith(".cpp") or name in NEED_CXX)
]
SHOWN = {"spsc_ring.c", "mailbox.c", "thread_pool.cpp", "hash_set.pyx"}


def explored(subject: Subject, seed: int, executions: int) -> Exploration:
    return explore(
        subject, Program.of_test(subject), executions=executions, seed=seed, reuse="mixed"
    )


def test_the_table_has_every_program() -> None:
    files = {path.name for path in HERE.iterdir() if path.suffix in LANGUAGES}
    assert files == set(PROGRAMS)
    assert len(files) == 20
    assert set(KINDS.values()) <= files
    assert {Path(name).suffix for name in files} == {".c", ".cpp", ".pyx"}


def foreign_words(text: str) -> list[str]:
    """Return words of this project in a program, and what it includes beside the languages'."""
    included = ["".join(found) for found in INCLUDE.findall(text)]
    known = {path.name for path in HERE.iterdir()}
    return OURS.findall(text) + [
        name
        for name in included
        if name not in known and name.split(".")[0] not in {"libc", "libcpp", "posix"}
    ]


def test_no_program_knows_where_it_runs() -> None:
    for path in HERE.iterdir():
        if path.is_file():
            assert not foreign_words(path.read_text()), path.name
    assert foreign_words("// check: mode=sc\n") == ["check:"]
    assert foreign_words('#include "pulsar_ml/check.h"\n') == [
        "pulsar",
        "check.h",
        "pulsar_ml/check.h",
    ]
    assert foreign_words("from pulsar_ml.sync.atomics cimport pml_i64\n")


@pytest.mark.parametrize("name", BUILDABLE)
def test_the_bug_is_found_and_the_mended_program_is_silent(name: str) -> None:
    source = read_source(HERE / name)
    subjects = build_tests(source, into=BUILDS)
    buggy = [test for test in source.tests if test.name.endswith("_buggy")]
    mended = [test for test in source.tests if not test.name.endswith("_buggy")]
    assert len(buggy) == 1
    assert mended
    first = []
    for seed in SEEDS:
        done = explored(subjects[buggy[0].name], seed, EXECUTIONS)
        assert done.failure is not None, f"seed {seed}: not found in {EXECUTIONS:,} executions"
        assert done.failure.kind in PROGRAMS[name], f"seed {seed}: {done.failure.message}"
        first.append(done.executions)
    print(f"{name}: first failure after {median(first):g} executions, at most {max(first)}")
    for test in mended:
        for seed in CLEAN_SEEDS:
            done = explored(subjects[test.name], seed, CLEAN_EXECUTIONS)
            assert done.failure is None, f"{test.name}, seed {seed}: {done.failure}"
            assert done.verdict == "clean"


@pytest.mark.parametrize("name", [name for name in BUILDABLE if name in SHOWN])
def test_a_failure_is_shrunk_shown_and_made_again_in_another_process(name: str) -> None:
    source = read_source(HERE / name)
    subjects = build_tests(source, into=BUILDS)
    test = next(test for test in source.tests if test.name.endswith("_buggy"))
    result = check_function(source.path, test, subjects[test.name])
    assert result.failure is not None
    assert result.failure.kind in PROGRAMS[name]
    assert name in result.text
    assert "made again, step by step" in result.text
    again, _ = replayed_text(result.failure, subjects[test.name], None)
    assert again

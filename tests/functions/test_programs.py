"""Twenty small programs as their authors would write them, each in a buggy and a mended variant.

The programs know nothing of the engine. Each bug is found in 20 of 20 seeds within the default
budget, and the mended variants are silent.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from pulsar_ml.harness.functions import LANGUAGES
from pulsar_ml.harness.functions.check import (
    EXECUTIONS,
    build_tests,
    check_function,
    program_of,
    replayed_text,
)
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.explore import Exploration, explore
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
# An extension with C++ in it needs that compiler, too.
NEED_CXX = ("refcount.pyx", "hash_set.pyx")
BUILDABLE = [
    name for name in PROGRAMS if HAS_CXX or not (name.endswith(".cpp") or name in NEED_CXX)
]
SHOWN = {"spsc_ring.c", "mailbox.c", "thread_pool.cpp", "hash_set.pyx"}


def explored(subject: Subject, seed: int, executions: int) -> Exploration:
    return explore(subject, program_of(subject), executions=executions, seed=seed, reuse="mixed")


def test_the_table_has_every_program() -> None:
    files = {path.name for path in HERE.iterdir() if path.suffix in LANGUAGES}
    assert files == set(PROGRAMS)
    assert len(files) == 20


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

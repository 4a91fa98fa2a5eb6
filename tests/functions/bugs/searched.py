"""The twenty small programs: where their bugs are, and how soon each is found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pulsar_ml.harness.functions.check import EXECUTIONS, build_tests
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from tests import ROOT
from tests.conftest import HAS_CXX

PROGRAMS_FOLDER = Path(__file__).parents[1] / "programs"
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
# An extension with C++ in it needs that compiler, too.
NEED_CXX = ("refcount.pyx", "hash_set.pyx")
BUILDABLE = [
    name for name in PROGRAMS if HAS_CXX or not (name.endswith(".cpp") or name in NEED_CXX)
]
SHOWN = {"spsc_ring.c", "mailbox.c", "thread_pool.cpp", "hash_set.pyx"}


def explored(subject: Subject, seed: int, executions: int) -> Exploration:
    program = Program.of_test(subject)
    return explore(subject, program, executions=executions, seed=seed, reuse="mixed")


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one program.

    Attributes:
        name: its file.
        seeds: how many seeds were tried, each within the default budget.
        executions: the executions up to the failure, of each seed that found it.
        kinds: the kinds of these failures.
        silent: executions of the mended variants, none of which failed.
        false: what a mended variant was accused of, or was not exercised by.
        seconds: the processor time of all executions.
    """

    name: str
    seeds: int
    executions: tuple[int, ...]
    kinds: frozenset[str]
    silent: int
    false: tuple[str, ...]
    seconds: float

    @property
    def is_right(self) -> bool:
        """True when each seed found the bug, by an end that it may have, and nothing else."""
        return (
            len(self.executions) == self.seeds
            and self.kinds <= PROGRAMS[self.name]
            and self.silent > 0
            and not self.false
        )

    def describe(self) -> str:
        """Describe the result in one line."""
        found = f"{len(self.executions)} of {self.seeds}"
        middle, most = (
            (f"{each:,.0f}" for each in (median(self.executions), max(self.executions)))
            if self.executions
            else ("-", "-")
        )
        kinds = ", ".join(sorted(self.kinds)) or "-"
        mended = "; ".join(self.false) or "silent"
        cells = (self.name, found, middle, most, kinds, f"{self.silent:,}", mended)
        return f"| {' | '.join(cells)} | {self.seconds:.2f} |"


HEAD = (
    "| program | seeds | executions, median | at most | found as | mended, executions | mended "
    "| seconds |",
    "| --- | ---: | ---: | ---: | --- | ---: | --- | ---: |",
)


def search_program(name: str, silent: int = CLEAN_EXECUTIONS) -> Found:
    """Look for the bug of a program with each seed, and explore its mended variants.

    Those get ``silent`` executions for each of their seeds.
    """
    source = read_source(PROGRAMS_FOLDER / name)
    subjects = build_tests(source, into=BUILDS)
    buggy = [test.name for test in source.tests if test.name.endswith("_buggy")]
    mended = [test.name for test in source.tests if not test.name.endswith("_buggy")]
    assert len(buggy) == 1 and mended
    tries = [explored(subjects[buggy[0]], seed, EXECUTIONS) for seed in SEEDS]
    clean = [explored(subjects[test], seed, silent) for test in mended for seed in CLEAN_SEEDS]
    return Found(
        name,
        len(SEEDS),
        tuple(done.executions for done in tries if done.failure),
        frozenset(done.failure.kind for done in tries if done.failure),
        sum(done.executions for done in clean),
        tuple(
            done.failure.kind if done.failure else done.verdict
            for done in clean
            if done.verdict != "clean"
        ),
        sum(done.seconds for done in (*tries, *clean)),
    )

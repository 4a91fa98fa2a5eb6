"""Allocations that fail: every suite's model allows what the core answers, and no mistake more."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.campaign.trial.controlled import load_checked, program_of
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, TrialOptions, load_native, select_mutant
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT, build
from stress.mutants.catalogue import Mutant

FAULTS = ("no_memory",)
SEEDS = 6  # programs of each suite on the true core
MOST_SEEDS = 60  # programs in which a mutant must be found
EXECUTIONS = 500


def mistake(
    name: str,
    title: str,
    file: str,
    old: str,
    new: str,
    *,
    suite: str = "",
    function: str = "",
    cimports: str = "",
    settings: dict[str, tuple[int, int]] | None = None,
) -> Mutant:
    return Mutant(
        id=name,
        title=title,
        origin="port",
        file=f"structures/{file}.pxd",
        old=old,
        new=new,
        suite=suite or file,
        breaks="",
        function=function,
        cimports=cimports,
        settings=settings or {},
    )


# Mistakes that show only where an allocation fails, and those that a pool at its limit shows, too.
FULL_POOLS = {"N03"}
MUTANTS = (
    mistake(
        "N01",
        "a handle of a chunk that could not be allocated is lost",
        "object_pool",
        "if not pool_ensure_chunk(pool, handle >> pool.chunk_bits):\n    return 0",
        "if not pool_ensure_chunk(pool, handle >> pool.chunk_bits):\n"
        "    u32_cas_strong_acq_rel(&pool.used, &handle, handle + 1)\n"
        "    return 0",
        cimports="from pulsar_ml.sync.atomics cimport u32_cas_strong_acq_rel",
    ),
    mistake(
        "N02",
        "an offer without memory keeps its slot",
        "mpsc_queue",
        "if next_chunk is NULL:\n    return PML_NO_MEMORY",
        "if next_chunk is NULL:\n"
        "    u64_store_release(&queue.tail, tail + 1)\n"
        "    return PML_NO_MEMORY",
    ),
    mistake(
        "N03",
        "a copy that got no handle keeps its payload",
        "entry",
        "share_release(share)\n"
        "if read_count:\n    read_count_release(&pool.read_counts, read_count)",
        "if read_count:\n    read_count_release(&pool.read_counts, read_count)",
        function="entry_copy",
    ),
    mistake(
        "N04",
        "a put that is not queued stays in the map",
        "range_cache",
        "map_remove(&cache.map, key, handle)",
        "pass",
        function="range_cache_link",
    ),
    mistake(
        "N05",
        "a range without memory is answered as new",
        "ack_ranges",
        "if not blocks_insert(&acks.ranges, spot, &fresh):\n    return ACK_NO_MEMORY",
        "if not blocks_insert(&acks.ranges, spot, &fresh):\n    return ACK_NEW",
        suite="ack_state",
    ),
    mistake(
        "N06",
        "a bucket that was made for a message without memory stays",
        "delayed_tracker",
        "tracker_take_out(tracker, handle, position(-1, -1))",
        "pass",
        function="delayed_tracker_add",
    ),
    mistake(
        "N07",
        "a request without memory stays with the reads that it joined",
        "pending_reads",
        "pending_detach(reads, request)",
        "pass",
        function="pending_reads_read",
    ),
    mistake(
        "N08",
        "a cursor that got no place is lost",
        "cursor_heap",
        "registry_give(&heap.registry, &cursor.node)",
        "pass",
        function="cursor_heap_add",
    ),
    mistake(
        "N09",
        "a scan without memory for its plan frees nothing",
        "ledger_scan",
        "run.unplanned = not scan_make_plan(base.memory, plan, run.target - run.removed.bytes)",
        "if not scan_make_plan(base.memory, plan, run.target - run.removed.bytes):\n"
        "    return False",
        suite="cache_manager",
        settings={"policy": (3, 3)},  # ledger_scan
    ),
    mistake(
        "N10",
        "what has no place in a queue is not removed",
        "s3_fifo",
        "if not handle:\n    return STOP",
        "return STOP",
        function="s3_handle_waiting",
        suite="eviction_policy",
    ),
)


def search(module: ModuleType, suite: Suite, seeds: int, faults: tuple[str, ...]) -> Failure | None:
    """Return the first failure of the suite's programs."""
    subject = module.SUBJECTS[suite.subject]
    for seed in range(seeds):
        done = explore(
            subject,
            program_of(subject, suite, seed, TrialOptions()),
            executions=EXECUTIONS,
            seed=seed,
            faults=faults,
            reuse="mixed",
            judge=judge_of(suite.model),
        )
        if done.failure is not None:
            return done.failure
    return None


@pytest.mark.parametrize("name", sorted(SUITES))
@pytest.mark.parametrize("mode", ["sc", "c11"])
def test_the_true_core_is_silent(name: str, mode: str) -> None:
    suite = SUITES[name]

    def work() -> str:
        subject = load_native(CHECKED).SUBJECTS[suite.subject]
        for seed in range(SEEDS):
            done = explore(
                subject,
                program_of(subject, suite, seed, TrialOptions()),
                executions=EXECUTIONS,
                seed=seed,
                mode=mode,
                faults=FAULTS,
                reuse="mixed",
                judge=judge_of(suite.model),
            )
            if done.failure is not None:
                return f"{done.failure.kind} {done.failure.rule}: {done.failure.message}"
        return ""

    assert call(work) == ""


EVERY_FAULT = ("no_memory", "weak_failure", "spurious", "timeout")


@pytest.mark.parametrize(
    ("name", "seeds", "options"),
    [
        # A read met a fill that found no place in the queue and emptied its slot again.
        ("entry_wrapper", range(84000, 84020), {"threads": 3, "faults": FAULTS}),
        # A wrapper that was emptied before a pass without memory gave it up was counted nowhere.
        ("cache_manager", range(900104, 900105), {"threads": 2, "faults": FAULTS, "mode": "c11"}),
        # A thread that waited for its turn to look again was forgotten, and its end was reported
        # as a livelock.
        (
            "range_cache",
            range(72002, 72003),
            {"threads": 3, "faults": EVERY_FAULT, "mode": "tso", "strategy": "pct"},
        ),
    ],
)
def test_what_was_wrongly_reported_is_silent(
    name: str, seeds: range, options: dict[str, Any]
) -> None:
    suite = SUITES[name]
    threads = options.pop("threads")

    def work() -> str:
        subject = load_native(CHECKED).SUBJECTS[suite.subject]
        for seed in seeds:
            done = explore(
                subject,
                program_of(subject, suite, seed, TrialOptions(threads=threads)),
                executions=EXECUTIONS,
                seed=seeds.start,
                reuse="mixed",
                judge=judge_of(suite.model),
                **options,
            )
            if done.failure is not None:
                return f"{done.failure.kind} {done.failure.rule}: {done.failure.message}"
        return ""

    assert call(work) == ""


@cache
def mutants() -> ModuleType:
    path = build(ROOT / "build" / "memory_mutants", MUTANTS, checked=True)
    return load_checked(str(path))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mistake_without_memory_is_found(mutant: Mutant) -> None:
    module, suite = mutants(), SUITES[mutant.suite]
    size = suite.controlled
    suite = replace(suite, controlled=replace(size, settings={**size.settings, **mutant.settings}))

    def work() -> tuple[bool, bool]:
        select_mutant(module, mutant.id)
        with_fault = search(module, suite, MOST_SEEDS, FAULTS)
        without = search(module, suite, SEEDS, ())
        return with_fault is not None, without is not None

    assert call(work) == (True, mutant.id in FULL_POOLS)

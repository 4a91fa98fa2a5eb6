"""The cache manager against its model, and its books, trigger, settings and thread by hand."""

from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.operations import _native
from pulsar_ml.suites.cache_manager import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    machine_test,
    run_threads,
)  # fmt: skip

MISS, NO_MEMORY, DISABLED = 0, 3, 5
BYTES = 24  # of key 5 and of key 10

TestSequential = machine_test("cache_manager")


def pair(**settings: int) -> Pair:
    return Pair("cache_manager", {"keys": 128, "max_size": 1000, "watermark": 80} | settings)


def size(of: Pair) -> int:
    return of.call("stats").words[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_program_answers_what_the_model_says(seed: int) -> None:
    compare_program("cache_manager", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_real_threads_violate_nothing(seed: int) -> None:
    run_threads(SUITE, seed)


def test_no_thread_serves_outside_of_a_call_that_starts_one() -> None:
    manager = pair()
    assert manager.call("serves").status == MISS
    manager.instance.call("serve", 0, 0, 2)
    assert manager.instance.call("serves").status == MISS


def test_misses_are_counted_and_a_fork_changes_nothing() -> None:
    manager = pair()
    manager.call("miss", 3, 300)
    manager.call("fork")
    manager.call("put", 0, 5, 0)
    manager.instance.check()


def test_a_put_that_finds_no_memory_is_not_booked() -> None:
    refused = 0
    try:
        for failing in range(30):
            _native.fail_allocation_after(failing)
            try:
                manager = pair(chunk_bits=2).instance
            except MemoryError:
                refused += 1
                continue
            refused += sum(manager.call("put", 0, key, 1).status == NO_MEMORY for key in range(30))
            _native.fail_allocation_after(-1)
            manager.check()
    finally:
        _native.fail_allocation_after(-1)
    assert refused == 30


@pytest.mark.parametrize(
    "max_size, watermark, keys, left",
    # The threshold is 98 % of the size, rounded down; at it nothing goes, above it all above the
    # watermark.
    [(245, 80, 10, 240), (244, 80, 10, 192), (240, 50, 10, 120), (48, 100, 2, 48), (47, 10, 2, 0)],
)
def test_the_trigger_is_strictly_above_98_per_cent(
    max_size: int, watermark: int, keys: int, left: int
) -> None:
    manager = pair(max_size=max_size, watermark=watermark)
    for i in range(keys):
        manager.call("put", 0, 5 * i, 0)
    assert size(manager) == left
    manager.instance.check()


def test_the_oldest_entries_of_all_caches_go_first() -> None:
    manager = pair(caches=3, max_size=240, watermark=50)
    for i in range(11):
        manager.call("put", i % 3, 5 * i, 0)
    seen = [manager.call("exists", i % 3, 5 * i).status for i in range(11)]
    assert seen == [0] * 5 + [1] * 6 or sum(seen) * BYTES == size(manager)
    assert seen == sorted(seen)


def test_only_size_passes_count_as_evictions() -> None:
    manager = pair(max_size=240)
    for i in range(5):
        manager.call("put", 0, 5 * i, 0)
    manager.call("tick")
    assert manager.call("stats").words == (0, 5, 5, 0)
    for i in range(15):
        manager.call("put", 0, 5 * i, 0)
    assert manager.call("stats").words[3] > 0


def test_invalidation_and_passes_are_booked_once() -> None:
    manager = pair(max_size=4096)
    for key in range(64):
        manager.call("put", 0, key, 0)
    before = size(manager)
    removed = manager.call("remove_range", 0, 10, 3).words[3]
    freed = manager.call("free", 100).words[1]
    assert size(manager) == before - removed - freed
    manager.call("clear", 0)
    assert manager.call("stats").words == (0, 64, 64, 0)
    manager.instance.check()


def test_sums_are_not_cut_to_32_bits() -> None:
    manager = pair(max_size=4096, length_shift=26)
    for key in range(64):
        manager.call("put", 0, key, 0)
    assert size(manager) > 2**36
    assert manager.call("configure", 100, 50, 0).status == 0
    assert size(manager) <= 50 << 26
    manager.instance.check()


def test_a_cache_of_size_zero_takes_nothing_and_finds_nothing() -> None:
    manager = pair()
    manager.call("put", 0, 5, 0)
    manager.call("configure", 0, 80, 0)
    assert manager.call("put", 0, 10, 0).status == DISABLED
    assert manager.call("get", 0, 5).status == 0
    assert manager.call("stats").words == (0, 1, 1, 1)
    manager.call("configure", 1000, 80, 0)
    assert manager.call("put", 0, 10, 0).status == 0
    manager.instance.check()


def test_a_smaller_size_evicts_at_once() -> None:
    manager = pair(max_size=4096)
    for key in range(64):
        manager.call("put", 0, key, 0)
    manager.call("configure", 1000, 50, 0)
    assert 500 - 56 < size(manager) <= 500
    manager.instance.check()


def test_a_tick_takes_what_is_older_than_the_time_to_live() -> None:
    manager = pair(max_size=4096)
    manager.call("configure", 4096, 80, 5)
    for i in range(10):
        manager.call("put", 0, 5 * i, 0)
    manager.call("tick")
    assert [manager.call("exists", 0, 5 * i).status for i in range(10)] == [0] * 5 + [1] * 5


@pytest.mark.parametrize("policy", range(7))
def test_every_policy_is_kept_to_the_size(policy: int) -> None:
    manager = pair(policy=policy, max_size=500, watermark=60)
    for key in range(128):
        manager.call("put", 0, key, 0)
        assert size(manager) <= 490
    manager.instance.check()


def test_the_thread_evicts_what_puts_trigger_and_ends_with_the_call() -> None:
    instance = _native.SUBJECTS["cache_manager"].create(
        threads=1, settings={"keys": 128, "max_size": 100, "watermark": 50}
    )
    for key in range(0, 128, 16):
        assert instance.call("serve", 0, key, 16).status == 0
    total, inserted, _, evictions = instance.call("stats").words
    assert inserted == 128
    assert evictions > 0
    assert total <= 98
    instance.check()


# Negative controls.


def test_a_wrong_size_is_noticed_at_quiescence() -> None:
    manager = pair()
    manager.instance.call("put", 0, 5, 0)
    manager.instance.call("misbook")
    with pytest.raises(InvariantViolation, match=r"I42:|I45:"):
        manager.instance.check()


def test_a_forgotten_trigger_is_noticed_at_quiescence() -> None:
    manager = pair(max_size=100)
    manager.instance.call("put", 0, 5, 0)
    manager.instance.call("leave_marked")
    for i in range(8):
        manager.instance.call("put", 0, 5 * i, 0)
    with pytest.raises(InvariantViolation, match=r"I61:|I63:"):
        manager.instance.check()


def test_a_pass_does_not_come_back_to_what_it_keeps_in_the_stash() -> None:
    """A size pass that has enough still drops the empty wrappers behind those that it kept."""
    settings = {
        "caches": 2, "keys": 14, "chunk_bits": 6, "queue_chunk_bits": 2, "max_requeue": 0,
        "extend": 0, "length_shift": 1, "keep": 1, "policy": 2, "max_size": 1909, "watermark": 63,
    }  # fmt: skip
    both = Pair("cache_manager", settings)
    both.call("put", 2, 103, 3, thread=1)
    both.call("put", 0, 113, 1, thread=1)
    both.call("tick", thread=2)
    both.call("put", 1, 0, 3, thread=1)
    both.call("dispatch", 0, 15, 2, thread=2)
    both.call("release", 2, thread=2)
    both.call("remove_range", 1, 56, 3, thread=0)
    freed = both.call("free", 10, thread=0)
    assert (freed.words[0], freed.words[3]) == (1, 1)
    both.instance.check()

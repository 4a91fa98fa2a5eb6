from __future__ import annotations

import pytest

from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.operations import _native
from pulsar_ml.suites import broker_cache, removal_queue
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    calls_of,
    compare_program,
    machine_test,
    run_threads,
)

OVER, NO_MEMORY = 0, 3
BYTES = 24  # counted for a key divisible by five while length_shift is 0
AT_ONCE = -1

# How a pass runs: as it is, or with each step compared with the head before it.
WAYS = pytest.mark.parametrize("watched", [0, 1])

TestMachine = machine_test("removal_queue")


def started(**settings: int) -> Pair:
    return Pair("removal_queue", {"caches": 2, "keys": 128, **settings})


def put(pair: Pair, *keys: int, expected_reads: int = 0) -> None:
    for key in keys:
        pair.call("put", 0, key, expected_reads)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("removal_queue", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(removal_queue.SUITE, seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants_in_a_brokers_mix(seed: int) -> None:
    run_threads(broker_cache.SUITE, seed)


@WAYS
def test_a_time_pass_removes_what_is_older_than_its_threshold(watched: int) -> None:
    pair = started()
    put(pair, 0, 5)
    # The second put was one tick before the pass, which is not older than one tick.
    assert pair.call("expire", 1, watched) == (OVER, (1, BYTES, 0, 0))
    assert pair.call("exists", 0, 5).status == 1
    assert pair.call("expire", 0, watched) == (OVER, (1, BYTES, 0, 0))
    pair.instance.check()


@WAYS
def test_a_time_pass_stops_at_the_first_young_entry(watched: int) -> None:
    pair = started()
    put(pair, 0)
    # This one took its timestamp before the other and came to the queue after it.
    pair.call("put_late", 0, 5, 20)
    assert pair.call("expire", 10, watched) == (OVER, (0, 0, 0, 0))
    pair.instance.check()


@WAYS
def test_a_time_pass_handles_each_entry_once(watched: int) -> None:
    pair = started(max_requeue=5)
    put(pair, 0, 5, 10, expected_reads=1)
    assert pair.call("expire", 0, watched) == (OVER, (0, 0, 3, 0))
    assert pair.call("expire", 0, watched) == (OVER, (0, 0, 3, 0))
    pair.instance.check()


@WAYS
@pytest.mark.parametrize(
    "amount, entries", [(1, 1), (BYTES, 1), (BYTES + 1, 2), (3 * BYTES, 3), (5 * BYTES, 4)]
)
def test_a_size_pass_stops_as_soon_as_enough_is_free(
    watched: int, amount: int, entries: int
) -> None:
    pair = started()
    put(pair, 0, 5, 10, 15)
    assert pair.call("free", amount, watched) == (OVER, (entries, entries * BYTES, 0, 0))
    left = [pair.call("exists", 0, key).status for key in (0, 5, 10, 15)]
    assert left == [0] * entries + [1] * (4 - entries)
    pair.instance.check()


@WAYS
def test_a_size_pass_takes_the_oldest_of_all_caches_first(watched: int) -> None:
    pair = started()
    for number, key in enumerate((10, 0, 5, 20)):
        pair.call("put", number % 2, key, 0)
    pair.call("free", 3 * BYTES, watched)
    assert [pair.call("size", cache).words[0] for cache in (0, 1)] == [0, BYTES]
    assert pair.call("exists", 1, 20).status == 1
    pair.instance.check()


@WAYS
def test_access_extends_as_often_as_it_happens(watched: int) -> None:
    pair = started(max_requeue=0, extend=1)
    put(pair, 0)
    for _ in range(7):
        pair.call("get", 0, 0)
        assert pair.call("expire", 0, watched).words == (0, 0, 1, 0)
    assert pair.call("expire", 0, watched).words == (1, BYTES, 0, 0)
    pair.instance.check()


@WAYS
def test_an_entry_that_was_read_as_often_as_expected_is_not_kept(watched: int) -> None:
    pair = started(max_requeue=5)
    put(pair, 0, expected_reads=1)
    pair.call("dispatch", 0, 0, AT_ONCE)
    assert pair.call("expire", 0, watched).words == (1, BYTES, 0, 0)
    pair.instance.check()


@WAYS
def test_a_new_incarnation_of_a_wrapper_has_its_whole_budget(watched: int) -> None:
    pair = started(max_requeue=1)
    for _ in range(3):
        put(pair, 0, expected_reads=1)
        assert pair.call("expire", 0, watched).words == (0, 0, 1, 0)
        assert pair.call("expire", 0, watched).words == (1, BYTES, 0, 0)
    pair.instance.check()


@WAYS
def test_empty_wrappers_are_dropped_and_counted_nowhere(watched: int) -> None:
    pair = started()
    put(pair, 0, 5, 10)
    pair.call("remove_range", 0, 0, 0)
    pair.call("remove_range", 0, 5, 0)
    assert pair.call("free", 1, watched) == (OVER, (1, BYTES, 0, 2))
    pair.instance.check()


def test_settings_hold_for_the_decisions_after_them() -> None:
    pair = started(max_requeue=0)
    put(pair, 0, expected_reads=2)
    pair.call("configure", 1, 0)
    assert pair.call("expire", 0, 0).words == (0, 0, 1, 0)
    pair.call("configure", 0, 0)
    assert pair.call("expire", 0, 0).words == (1, BYTES, 0, 0)
    pair.instance.check()


@WAYS
def test_a_duplicate_put_does_not_queue_its_wrapper(watched: int) -> None:
    pair = started()
    put(pair, 0, 0, 5)
    assert pair.call("free", 1, watched) == (OVER, (1, BYTES, 0, 0))
    assert pair.call("exists", 0, 5).status == 1
    assert pair.call("free", 1, watched) == (OVER, (1, BYTES, 0, 0))
    assert pair.call("free", 1, watched) == (OVER, (0, 0, 0, 0))
    pair.instance.check()


@WAYS
def test_a_pass_removes_bytes_beyond_32_bits(watched: int) -> None:
    pair = started(length_shift=26)
    put(pair, 0, 5, 10, 15)
    assert pair.call("free", 3 * BYTES, watched).words[:2] == (3, 3 * BYTES << 26)
    assert 3 * BYTES << 26 > 2**32
    pair.instance.check()


@WAYS
def test_a_pass_over_a_value_released_too_often_takes_its_bytes_off(watched: int) -> None:
    pair = started()
    put(pair, 0)
    pair.call("over_release", 0, 0)
    assert pair.call("expire", 0, watched).words == (1, BYTES, 0, 0)
    assert pair.call("size", 0).words[0] == 0
    pair.instance.check()


def test_a_held_entry_can_be_evicted_and_stays_readable() -> None:
    pair = started()
    put(pair, 0)
    pair.call("hold", 0, 0, 2)
    assert pair.call("free", 1, 0).words[0] == 1
    assert pair.call("get", 0, 0).status == 0
    assert pair.call("release", 2).status == 2
    pair.instance.check()


# A requeue that has no memory removes the entry instead: the one call whose answer may differ.
@pytest.mark.parametrize("policy", range(7))
def test_a_failed_allocation_loses_nothing(policy: int) -> None:
    failing = 0
    try:
        while run_failing(policy, failing):
            failing += 1
    finally:
        _native.fail_allocation_after(-1)
    assert failing > 20


def run_failing(policy: int, failing: int) -> bool:
    chosen, program = calls_of("removal_queue", 1, 40)
    chosen["policy"] = policy
    _native.fail_allocation_after(failing)
    try:
        pair = Pair("removal_queue", chosen)
    except MemoryError:
        return True
    failed = False
    for thread, operation, arguments in program:
        seen = pair.instance.call(operation.name, *arguments, thread=thread)
        expected = pair.model.step(operation.name, arguments, thread=thread)
        if tuple(seen) != expected and operation.name in ("expire", "free"):
            assert not failed
            failed = True
            break
        if tuple(seen) != expected and not failed:
            failed = True
            assert seen.status == NO_MEMORY
            seen = pair.instance.call(operation.name, *arguments, thread=thread)
        assert tuple(seen) == expected, f"{operation.name}{arguments}: {seen}, not {expected}"
    _native.fail_allocation_after(-1)
    pair.instance.check()
    return failed


@pytest.mark.parametrize("policy", ["central_queue", "released_queue", "released_5"])
@pytest.mark.parametrize("accessed", [0, 1])
def test_a_watched_time_pass_may_remove_what_it_has_no_memory_to_keep(
    policy: str, accessed: int
) -> None:
    removed = set()
    for entries in range(1, 10):
        pair = started(
            max_requeue=5,
            extend=accessed,
            queue_chunk_bits=2,
            policy=list(EVICTION_POLICIES).index(policy),
        )
        put(pair, *range(entries), expected_reads=1 - accessed)
        for key in range(entries * accessed):
            pair.call("get", 0, key)
        _native.fail_allocation_after(0)
        try:
            # The wrapper that is to be kept is marked with the pass's time already.
            removed.add(pair.instance.call("expire", 0, 1).words[0])
        finally:
            _native.fail_allocation_after(-1)
        pair.instance.check()
    assert 1 in removed


# Negative controls.


def test_a_lost_wrapper_is_noticed() -> None:
    pair = started()
    put(pair, 0, 5)
    assert pair.instance.call("lose").status == 1
    with pytest.raises(InvariantViolation, match=r"I64|I23"):
        pair.instance.check()


@pytest.mark.parametrize(
    "mistake, invariant", [("forget", "I15"), ("miscount", "I41"), ("scribble", "I2")]
)
def test_a_mistake_is_noticed_at_quiescence(mistake: str, invariant: str) -> None:
    pair = started()
    put(pair, 5)
    pair.instance.call(mistake, 0, 5)
    with pytest.raises(InvariantViolation, match=invariant + ":"):
        pair.instance.check()

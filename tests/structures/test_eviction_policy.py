from __future__ import annotations

import pytest

from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.harness.subjects.subject import InvariantViolation, Result
from pulsar_ml.specs.eviction_policy import digest
from pulsar_ml.suites.eviction_policy import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    calls_of,
    compare_program,
    machine_test,
    run_threads,
)

KINDS = range(len(EVICTION_POLICIES))
CENTRAL_QUEUE, RELEASED_QUEUE, STASH_QUEUE, LEDGER_SCAN, LRU, S3_FIFO, PRIORITY_QUEUE = (
    list(EVICTION_POLICIES).index(name)
    for name in (
        "central_queue", "released_queue", "stash_queue", "ledger_scan", "lru", "s3_fifo",
        "priority_queue",
    )
)  # fmt: skip
OVER, INTERRUPTED = 0, 1
BYTES = 24  # counted for a key divisible by five while length_shift is 0
AT_ONCE = -1  # dispatch: the copy is released at once

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
# How a pass is cut: the same must leave in the same order.
SLICES = pytest.mark.parametrize("slice_steps", [1, 3, 64])

# Every call of every kind against its model, passes with their victims in order.
TestMachine = machine_test("eviction_policy")


def started(kind: int, **settings: int) -> Pair:
    return Pair("eviction_policy", {"caches": 2, "keys": 128, "policy": kind, **settings})


def put(pair: Pair, *keys: int, cache: int = 0, expected_reads: int = 0) -> None:
    for key in keys:
        assert pair.call("put", cache, key, expected_reads).status == 0


def left(pair: Pair, *keys: int, cache: int = 0) -> list[int]:
    return [key for key in keys if pair.call("exists", cache, key).status]


def kept(result: Result) -> int:
    return result.words[2] & 0xFFFFFFFF


def assert_victims(result: Result, *keys: int, cache: int = 0) -> None:
    assert result.words[0] == len(keys)
    assert result.words[3] % 2**64 == digest((cache, key) for key in keys)


@EVERY_KIND
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_long_programs_have_the_models_victims_in_its_order(kind: int, seed: int) -> None:
    chosen, program = calls_of("eviction_policy", seed, 250)
    pair = Pair("eviction_policy", {**chosen, "policy": kind})
    for thread, operation, arguments in program:
        pair.call(operation.name, *arguments, thread=thread)
    pair.instance.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_kinds_answer_as_the_model(seed: int) -> None:
    compare_program("eviction_policy", seed, calls=300)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


# The common part of all policies.


@EVERY_KIND
@SLICES
def test_a_time_pass_removes_what_is_old_and_no_more(kind: int, slice_steps: int) -> None:
    pair = started(kind)
    put(pair, 0, 5, 10)
    assert_victims(pair.call("expire", 1, slice_steps), 0, 5)
    assert left(pair, 0, 5, 10) == [10]
    pair.instance.check()


@EVERY_KIND
@SLICES
def test_a_size_pass_removes_the_oldest_of_one_ledger_until_enough_is_free(
    kind: int, slice_steps: int
) -> None:
    pair = started(kind)
    put(pair, 0, 5, 10, 15)
    assert_victims(pair.call("free", BYTES + 1, slice_steps), 0, 5)
    assert left(pair, 0, 5, 10, 15) == [10, 15]
    pair.instance.check()


@EVERY_KIND
def test_wrappers_that_were_emptied_are_dropped_and_counted_nowhere(kind: int) -> None:
    pair = started(kind)
    put(pair, 0, 5, 10)
    pair.call("remove_range", 0, 0, 0)
    result = pair.call("free", 1, 64)
    assert_victims(result, 5)
    assert result.words[2] >> 32 == (kind != LEDGER_SCAN)
    pair.instance.check()


@EVERY_KIND
def test_one_size_pass_over_everything_ends_while_all_is_read(kind: int) -> None:
    pair = started(kind, extend=1, max_requeue=5)
    put(pair, 0, 5, 10, expected_reads=3)
    pair.call("configure", 5, 1, 0)
    result = pair.instance.call("free_while_read", 3 * BYTES, 10000)
    assert result.status == (INTERRUPTED if kind == RELEASED_QUEUE else OVER)
    assert result.words[0] == (0 if kind == RELEASED_QUEUE else 3)
    pair.instance.check()


# The weaknesses of the released passes, and the rule that mends them.


@SLICES
def test_released_one_size_pass_spends_every_extension_of_every_entry(slice_steps: int) -> None:
    pair = started(RELEASED_QUEUE, max_requeue=5)
    put(pair, 0, 5, 10, expected_reads=1)
    result = pair.call("free", 1, slice_steps)
    assert_victims(result, 0)
    assert kept(result) == 15
    # The two others have nothing left and go with the next time pass.
    assert_victims(pair.call("expire", 0, slice_steps), 5, 10)
    pair.instance.check()


@SLICES
def test_central_one_size_pass_extends_an_entry_once(slice_steps: int) -> None:
    pair = started(CENTRAL_QUEUE, max_requeue=5)
    put(pair, 0, 5, 10, expected_reads=1)
    result = pair.call("free", 1, slice_steps)
    assert_victims(result, 0)
    assert kept(result) == 3
    # Four extensions are left to each of the others.
    for _ in range(4):
        assert kept(pair.call("expire", 0, slice_steps)) == 2
    assert_victims(pair.call("expire", 0, slice_steps), 5, 10)
    pair.instance.check()


def test_released_access_and_expected_reads_share_one_budget() -> None:
    pair = started(RELEASED_QUEUE, max_requeue=1, extend=1)
    put(pair, 0, expected_reads=1)
    pair.call("get", 0, 0)
    assert kept(pair.call("expire", 0, 1)) == 1
    assert_victims(pair.call("expire", 0, 1), 0)
    pair.instance.check()


def test_central_an_access_leaves_the_extensions_of_expected_reads() -> None:
    pair = started(CENTRAL_QUEUE, max_requeue=1, extend=1)
    put(pair, 0, expected_reads=1)
    for _ in range(3):
        pair.call("get", 0, 0)
        assert kept(pair.call("expire", 0, 1)) == 1
    assert kept(pair.call("expire", 0, 1)) == 1
    assert_victims(pair.call("expire", 0, 1), 0)
    pair.instance.check()


@pytest.mark.parametrize("entries", [1, 3, 20])
def test_released_readers_keep_a_size_pass_busy_for_ever(entries: int) -> None:
    max_requeue = 5
    pair = started(RELEASED_QUEUE, max_requeue=max_requeue, extend=1)
    put(pair, *range(0, 5 * entries, 5))
    bound = (max_requeue + 2) * entries + 1
    # Without readers the pass would end within the bound; with them it does not, however long it
    # runs.
    for most_steps in (bound, 40 * bound):
        result = pair.instance.call("free_while_read", 1, most_steps)
        assert (result.status, result.words) == (INTERRUPTED, (0, 0, most_steps, most_steps))
    pair.instance.check()


@pytest.mark.parametrize("entries", [1, 3, 20])
def test_central_readers_delay_a_size_pass_by_one_round(entries: int) -> None:
    pair = started(CENTRAL_QUEUE, max_requeue=5, extend=1)
    put(pair, *range(0, 5 * entries, 5))
    result = pair.instance.call("free_while_read", 1, 10000)
    assert result.status == OVER
    # Each entry once, the victim, and the look at the next that says enough.
    assert result.words == (1, BYTES, entries, entries + 2)
    pair.instance.check()


# The stash of the first revision.


def test_stash_keeps_what_expects_reads_until_it_was_read() -> None:
    pair = started(STASH_QUEUE)
    put(pair, 0, 5, expected_reads=1)
    put(pair, 10)
    assert_victims(pair.call("free", 3 * BYTES, 1), 10)
    pair.call("dispatch", 0, 5, AT_ONCE)
    assert_victims(pair.call("free", 3 * BYTES, 1), 5)
    assert left(pair, 0, 5, 10) == [0]
    pair.instance.check()


def test_stash_ends_a_life_that_is_too_long() -> None:
    pair = started(STASH_QUEUE)
    pair.call("configure", 0, 0, 4)
    put(pair, 0, expected_reads=1)
    put(pair, 5)
    # Two lives: the one that expects a read is kept beyond the threshold, up to four ticks.
    assert_victims(pair.call("expire", 0, 1), 5)
    assert_victims(pair.call("expire", 0, 1))
    assert_victims(pair.call("expire", 0, 1))
    assert_victims(pair.call("expire", 0, 1), 0)
    pair.instance.check()


def test_stash_is_asked_before_the_queue() -> None:
    pair = started(STASH_QUEUE)
    put(pair, 0, expected_reads=1)
    put(pair, 5)
    assert_victims(pair.call("free", 1, 1), 5)
    put(pair, 10)
    pair.call("dispatch", 0, 0, AT_ONCE)
    assert_victims(pair.call("free", 2 * BYTES, 1), 0, 10)
    pair.instance.check()


def test_stash_adds_the_expected_reads_of_a_duplicate() -> None:
    pair = started(STASH_QUEUE)
    put(pair, 0, expected_reads=1)
    assert pair.call("put", 0, 0, 2).status == 1
    assert pair.call("get", 0, 0).words[1] == 3
    pair.instance.check()


def test_stash_marks_what_left_as_evicted() -> None:
    pair = started(STASH_QUEUE)
    put(pair, 0, expected_reads=1)
    pair.call("hold", 0, 0, 1)
    pair.call("remove_range", 0, 0, 0)
    assert pair.call("release", 1).words[1] == -(1 << 30)
    pair.instance.check()


# The scan of all ledgers.


def test_scan_by_time_asks_each_ledger_and_stops_at_its_first_young_entry() -> None:
    pair = started(LEDGER_SCAN)
    # A position is no age: the young entry stands before the old one.
    put(pair, 5)
    put(pair, 0, cache=1)
    put(pair, 0)
    result = pair.call("expire", 1, 1)
    assert_victims(result, 0, cache=1)
    assert left(pair, 0, 5) == [0, 5]
    pair.instance.check()


def test_scan_by_size_takes_from_the_largest_ledger_whatever_is_older() -> None:
    pair = started(LEDGER_SCAN)
    put(pair, 0, cache=1)
    put(pair, 0, 5, 10)
    assert_victims(pair.call("free", BYTES, 1), 0)
    assert left(pair, 0, cache=1) == [0]
    pair.instance.check()


def test_scan_by_size_rounds_a_small_part_down_to_nothing() -> None:
    pair = started(LEDGER_SCAN, caches=3)
    for cache in range(3):
        put(pair, 0, 5, cache=cache)
    assert_victims(pair.call("free", 1, 1))
    pair.instance.check()


# LRU and S3-FIFO.


def test_lru_removes_in_the_order_of_the_last_use() -> None:
    pair = started(LRU)
    put(pair, 0, 5, 10, 15)
    pair.call("get", 0, 0)
    pair.call("read_range", 0, 10, 0)
    assert_victims(pair.call("free", 4 * BYTES, 1), 5, 15, 0, 10)
    pair.instance.check()


def test_lru_knows_a_use_between_two_passes() -> None:
    pair = started(LRU)
    put(pair, 0, 5, 10)
    assert_victims(pair.call("free", 1, 1), 0)
    pair.call("get", 0, 5)
    put(pair, 15)
    assert_victims(pair.call("free", 3 * BYTES, 1), 10, 5, 15)
    pair.instance.check()


def test_s3_fifo_gives_one_hit_wonders_up_first() -> None:
    pair = started(S3_FIFO)
    put(pair, 0, 5, 10, 15)
    for _ in range(2):
        pair.call("get", 0, 0)
    # The one that was hit twice moved on to the main queue; once is not enough.
    pair.call("get", 0, 5)
    result = pair.call("free", BYTES, 1)
    assert_victims(result, 5)
    assert kept(result) == 1
    assert_victims(pair.call("free", 3 * BYTES, 1), 10, 15, 0)
    pair.instance.check()


def test_s3_fifo_remembers_what_it_gave_up() -> None:
    pair = started(S3_FIFO)
    put(pair, *range(0, 60, 5))
    assert_victims(pair.call("free", 2 * BYTES, 1), 0, 5)
    # Put again, it is not new any more and outlives the small queue, but for its tenth of all
    # bytes.
    put(pair, 0)
    assert_victims(pair.call("free", 11 * BYTES, 1), *range(10, 55, 5), 0, 55)
    pair.instance.check()


def test_s3_fifo_lets_a_hit_go_round_once() -> None:
    pair = started(S3_FIFO)
    put(pair, *range(0, 60, 5))
    pair.call("free", 2 * BYTES, 1)
    put(pair, 0, 5)
    pair.call("get", 0, 0)
    result = pair.call("free", 12 * BYTES, 1)
    assert_victims(result, *range(10, 55, 5), 5, 0, 55)
    assert kept(result) == 1
    pair.instance.check()


# The priority queue.


def test_priority_removes_the_fewest_expected_reads_first_and_then_the_oldest() -> None:
    pair = started(PRIORITY_QUEUE)
    put(pair, 0, 5, expected_reads=2)
    put(pair, 10, expected_reads=1)
    put(pair, 15, 20)
    assert_victims(pair.call("free", 3 * BYTES, 1), 15, 20, 10)
    assert_victims(pair.call("free", 2 * BYTES, 1), 0, 5)
    pair.instance.check()


def test_priority_counts_reads_again_when_a_pass_begins() -> None:
    pair = started(PRIORITY_QUEUE)
    put(pair, 0, 5, expected_reads=1)
    put(pair, 10)
    assert_victims(pair.call("free", 1, 1), 10)
    pair.call("dispatch", 0, 5, AT_ONCE)
    assert_victims(pair.call("free", 2 * BYTES, 1), 5, 0)
    pair.instance.check()


def test_priority_by_time_leaves_what_expects_reads_for_a_longer_life() -> None:
    pair = started(PRIORITY_QUEUE)
    pair.call("configure", 0, 0, 3)
    put(pair, 0, expected_reads=1)
    put(pair, 5)
    assert_victims(pair.call("expire", 0, 1), 5)
    assert_victims(pair.call("expire", 0, 1))
    assert_victims(pair.call("expire", 0, 1), 0)
    pair.instance.check()


# A negative control.


@pytest.mark.parametrize("kind", [LRU, S3_FIFO, STASH_QUEUE, PRIORITY_QUEUE])
def test_wrong_books_of_a_list_are_noticed_at_quiescence(kind: int) -> None:
    pair = started(kind)
    pair.call("put", 0, 1, 0)
    pair.instance.call("mislist")
    with pytest.raises(InvariantViolation, match="EP-6:"):
        pair.instance.check()

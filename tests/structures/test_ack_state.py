from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from pulsar_ml.harness.histories.history import ANSWER, RECORD, RETURNED, History, Signature, frozen
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.specs import Answer, answer
from pulsar_ml.specs.ack_bytes import COUNTS_RIGHT
from pulsar_ml.specs.ack_state import Model
from pulsar_ml.suites.ack_state import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

NEW, KNOWN, INVALID, NO_MEMORY = range(4)
DAMAGED = 1
NORMAL, REPLAY, DELAYED = range(3)

TestMachine = machine_test("ack_state")


def started(**settings: int) -> Pair:
    chosen = {"by_bytes": 0, "max_ranges": 1, "max_batches": 1, "max_store_ranges": 1, **settings}
    return Pair("ack_state", chosen)


def counts(pair: Pair) -> int:
    """64 for each range, 1 for each batch."""
    return pair.call("look").words[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("ack_state", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [2, 4])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("ack_state", NO_MEMORY, seed=seed) >= 20


def test_ranges_merge_with_their_neighbours_and_the_mark_passes_them() -> None:
    pair = started()
    for entry, ranges in ((1, 1), (3, 2), (2, 1)):
        pair.call("ack_entry", 0, entry)
        assert counts(pair) == 64 * ranges
    pair.call("ack_entry", 0, 0)
    assert counts(pair) == 0
    assert pair.call("mark").words[0] == 16 + 4


def test_ranges_of_two_ledgers_merge_when_the_end_of_the_first_is_known() -> None:
    pair = started()
    pair.call("ack_entry", 0, 5)
    pair.call("ack_entry", 1, 0)
    assert counts(pair) == 2 * 64
    pair.call("end_ledger", 0)
    assert counts(pair) == 64
    assert pair.call("end_ledger", 0).status == KNOWN


def test_the_last_index_of_a_batch_acknowledges_the_entry() -> None:
    pair = started()
    pair.call("ack_index", 0, 1, 0)
    assert counts(pair) == 1
    assert pair.call("ack_index", 0, 1, 0).status == KNOWN
    pair.call("ack_index", 0, 1, 1)
    pair.call("ack_index", 0, 1, 2)
    assert counts(pair) == 64


def test_as_many_ranges_and_batches_as_the_limits_allow_fit() -> None:
    pair = started()
    pair.call("ack_entry", 0, 1)
    pair.call("ack_index", 0, 3, 0)
    assert pair.call("dispatch", NORMAL).words[0] == 1
    pair.call("ack_index", 0, 5, 0)
    assert pair.call("dispatch", NORMAL).words[0] == 0


def test_as_many_bytes_as_the_limit_fit() -> None:
    pair = started(by_bytes=1, max_bytes=64, max_ranges=0)
    pair.call("ack_entry", 0, 1)
    pair.call("set_metadata", 32)
    assert pair.call("dispatch", NORMAL).words[0] == 1
    pair.call("set_metadata", 33)
    assert pair.call("dispatch", NORMAL).words[0] == 0


def test_batches_above_their_limit_pause_though_no_range_is_there() -> None:
    pair = started(max_ranges=4)
    pair.call("ack_index", 0, 1, 0)
    pair.call("ack_index", 0, 2, 0)
    assert pair.call("dispatch", NORMAL).words[0] == 0


def test_a_paused_dispatcher_is_told_once_when_the_state_fits() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    assert pair.call("dispatch", NORMAL).words[0] == 0
    # A replay, which closes the gap, may be read.
    assert pair.call("dispatch", REPLAY).words[0] == 1
    assert pair.call("ack_entry", 0, 0, thread=1).words[0] == 1 << NORMAL
    assert pair.call("ack_entry", 0, 2, thread=1).words[0] == 0
    assert pair.call("dispatch", NORMAL).words[0] == 1


def test_messages_that_are_due_are_held_back_alike_and_told_by_themselves() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    assert pair.call("dispatch", DELAYED, thread=1).words[0] == 0
    assert pair.call("ack_entry", 0, 0).words[0] == 1 << DELAYED
    pair.call("ack_entry", 0, 3)
    for kind in (NORMAL, DELAYED):
        assert pair.call("dispatch", kind, thread=kind).words[0] == 0
    assert pair.call("ack_entry", 0, 2).words[0] == 1 << NORMAL | 1 << DELAYED


def test_switching_pauses_off_lets_the_dispatcher_go_on() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    pair.call("dispatch", NORMAL)
    assert pair.call("set_pauses", 0).words[0] == 1 << NORMAL


def test_the_highest_ranges_are_left_out_and_counted() -> None:
    pair = started(max_ranges=2)
    for entry in (1, 3, 5):
        pair.call("ack_entry", 0, entry)
    mark, stored, restored, _ = pair.call("store", 0).words
    assert (mark, stored) == (16, 2 + 64)
    assert restored == 0b111_000_111_000
    assert pair.call("store", 1).words[1] == 1 + 2 * 64


RIGHT = 0  # counts beside the bytes
NONE = 0  # no change of a word


def test_all_of_a_state_comes_back_whatever_its_limits() -> None:
    pair = started(max_ranges=0, max_batches=0)
    pair.call("ack_entry", 0, 1)
    pair.call("ack_entry", 0, 3)
    pair.call("ack_index", 0, 5, 1)
    done = pair.call("restore", 0, NONE, RIGHT)
    assert (done.status, done.words[1]) == (NEW, 2 * 64 + 1)
    assert done.words[3] == 0b010_000_111_000_111_000


@pytest.mark.parametrize(
    ("word", "change"),
    [
        (1, -1),  # the first range would begin at the mark
        (3, -2),  # it would end before it begins
        (5, -1),  # the second would go on where the first ends
        (7, -6),  # a negative entry
        (9, -2),  # a batch inside a range
        (10, -2),  # a batch of one message
        (11, -2),  # no message of it is acknowledged
        (11, 5),  # more messages than it has
    ],
)
def test_damaged_bytes_are_refused_and_leave_nothing(word: int, change: int) -> None:
    pair = started()
    pair.call("ack_entry", 0, 1)
    pair.call("ack_entry", 0, 3)
    pair.call("ack_index", 0, 5, 1)
    done = pair.call("restore", word, change, RIGHT)
    assert (done.status, done.words) == (DAMAGED, (16, 0, 0, 0))


@pytest.mark.parametrize("counts", [COUNTS_RIGHT + wrong for wrong in (1, 2, 3, 4, 6, 7)])
def test_wrong_counts_are_refused(counts: int) -> None:
    pair = started()
    pair.call("ack_entry", 0, 3)
    pair.call("ack_index", 0, 5, 1)
    assert pair.call("restore", 0, NONE, counts).status == DAMAGED


def test_bytes_that_are_another_legal_state_come_back_as_that() -> None:
    pair = started()
    pair.call("ack_entry", 0, 3)
    assert pair.call("restore", 3, 2, RIGHT).words[3] == 0b111_111_111_000_000_000


# Negative controls.


@pytest.mark.parametrize(
    "wrong",
    [
        answer(NEW, 16, 64, 32, 0b111_000_000),  # bytes that should be refused
        answer(DAMAGED, 16, 64, 32, 0b111_000_000),  # refused, and something is left
    ],
)
def test_a_wrong_answer_about_damaged_bytes_is_refused(wrong: Answer) -> None:
    entry = Observed(0, "ack_entry", (0, 2), answer(NEW), (1, 2))
    assert refused(entry, Observed(0, "restore", (3, -6, RIGHT), wrong, (3, 4)))
    right = answer(DAMAGED, 16, 0, 0, 0)
    assert not refused(entry, Observed(0, "restore", (3, -6, RIGHT), right, (3, 4)))


def test_an_acknowledgement_that_nobody_made_is_noticed() -> None:
    pair = started()
    pair.instance.call("ack_unasked", 0, 1)
    with pytest.raises(InvariantViolation, match="AR-3"):
        pair.instance.call("is_acked", 0, 1, 0)
    with pytest.raises(InvariantViolation, match="AC-2"):
        pair.instance.call("store", 0)


def test_an_acknowledgement_that_is_lost_is_noticed() -> None:
    pair = started()
    pair.instance.call("pretend", 0, 1)
    with pytest.raises(InvariantViolation, match="AR-3"):
        pair.instance.call("is_acked", 0, 1, 0)
    with pytest.raises(InvariantViolation, match="AC-2"):
        pair.instance.call("store", 0)


def test_a_dispatcher_that_stays_paused_is_noticed_at_quiescence() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    pair.call("dispatch", 0)
    pair.instance.call("open_silently")
    with pytest.raises(InvariantViolation, match="I99: kinds 1 stay paused"):
        pair.instance.check()


def test_a_dispatcher_that_nobody_tells_is_noticed_at_quiescence() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    pair.call("dispatch", 2)
    pair.instance.call("forget_dispatchers")
    assert pair.instance.call("ack_entry", 0, 0).words[0] == 0
    with pytest.raises(
        InvariantViolation, match="I99: the dispatcher of kind 2 was resumed 0 times"
    ):
        pair.instance.check()


def test_a_wrong_verdict_about_what_fits_is_noticed() -> None:
    pair = started()
    pair.instance.call("misjudge")
    with pytest.raises(InvariantViolation, match="AS-1"):
        pair.instance.call("look")


@dataclass(frozen=True)
class Observed:
    """One call of a history, and what it answered."""

    thread: int
    operation: str
    arguments: tuple[int, ...]
    answer: Answer
    when: tuple[int, int]


def refused(*said: Observed, fresh: bool = False) -> str:
    """The verdict of the suite's model about a history with room for no range."""
    names = sorted({call.operation for call in said})
    settings = {
        "by_bytes": 0,
        "max_bytes": 1,
        "max_ranges": 0,
        "max_batches": 1,
        "max_store_ranges": 0,
    }
    records = [
        (
            call.thread, names.index(call.operation), [*call.arguments, 0, 0, 0][:3],
            [call.answer[0], *call.answer[1]], *call.when, RETURNED, 0,
        )
        for call in said
    ]  # fmt: skip
    signatures = tuple(
        Signature(name, max(len(call.arguments) for call in said if call.operation == name), ANSWER)
        for name in names
    )
    history = History(
        signatures, frozen(np.array(records, dtype=RECORD)), (), "test", "test", settings
    )
    return ModelJudge(Model).message(history, 3, fresh=fresh)


GAP = Observed(0, "ack_entry", (0, 1), answer(NEW), (1, 2))
PAUSED = Observed(1, "dispatch", (NORMAL,), answer(NEW, 0), (3, 4))


def filled(thread: int, kinds: int, when: tuple[int, int]) -> Observed:
    return Observed(thread, "ack_entry", (0, 0), answer(NEW, kinds), when)


def known(thread: int, kinds: int, when: tuple[int, int]) -> Observed:
    return Observed(thread, "ack_entry", (0, 1), answer(KNOWN, kinds), when)


@pytest.mark.parametrize(
    ("said", "legal"),
    [
        ([GAP, PAUSED, filled(0, 1, (5, 6))], True),
        # Between the section that opens and the look at dispatchers another one may take the
        # wake-up.
        ([GAP, PAUSED, filled(0, 0, (5, 8)), known(2, 1, (5, 8))], True),
        ([GAP, PAUSED, filled(0, 1, (5, 8)), known(2, 1, (5, 8))], False),  # told of twice
        ([GAP, filled(0, 1, (5, 6))], False),  # nobody was paused
        ([GAP, PAUSED, filled(0, 1 << DELAYED, (5, 6))], False),  # nor that one
        ([GAP, PAUSED, known(0, 1, (5, 6))], False),  # nothing was opened
        ([GAP, filled(0, 0, (3, 4)), Observed(0, "dispatch", (NORMAL,), answer(NEW, 0), (5, 6))], False),
        ([GAP, Observed(0, "dispatch", (DELAYED,), answer(NEW, 1), (3, 4))], False),
        ([GAP, Observed(1, "dispatch", (REPLAY,), answer(NEW, 0), (3, 4))], False),
        ([GAP, filled(0, 0, (3, 4)), Observed(0, "mark", (), answer(NEW, 16), (5, 6))], False),
        ([GAP, Observed(0, "size", (), answer(NEW, 0), (3, 4))], False),
        ([GAP, Observed(0, "size", (), answer(NEW, 32), (3, 4))], True),
    ],
)  # fmt: skip
def test_answers_that_nothing_explains_are_refused(said: list[Observed], legal: bool) -> None:
    assert (refused(*said) == "") is legal


def test_an_old_verdict_is_legal_where_threads_may_see_old_values_and_only_there() -> None:
    late = Observed(1, "dispatch", (NORMAL,), answer(NEW, 1), (3, 4))
    assert refused(GAP, late) == ""
    assert "dispatch" in refused(GAP, late, fresh=True)

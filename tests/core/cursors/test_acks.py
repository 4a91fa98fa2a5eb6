from __future__ import annotations

import random
import struct
import threading

import pytest

from pulsar_ml import AckState, InvalidPositionError, InvalidSizeError, Position, StorageError

RANGE = struct.Struct("<qqqq")
MARK = Position(0, -1)


def scattered(count: int, seed: int) -> tuple[AckState, set[int]]:
    """Entries of one ledger in random order; enough to split blocks and to join their ends."""
    acks = AckState(MARK)
    chosen = random.Random(seed).sample(range(3 * count), count)
    for entry in chosen:
        assert acks.acknowledge((0, entry))
    return acks, set(chosen)


def runs_of(entries: set[int], mark: int) -> list[tuple[Position, Position]]:
    firsts = sorted(e for e in entries if e > mark and e - 1 not in entries | {mark})
    lasts = sorted(e for e in entries if e > mark and e + 1 not in entries)
    return [(Position(0, a), Position(0, b)) for a, b in zip(firsts, lasts, strict=True)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_ranges_are_those_of_a_set(seed: int) -> None:
    acks, entries = scattered(4000, seed)
    mark = next(e for e in range(12_001) if e not in entries) - 1
    assert acks.mark_delete_position == Position(0, mark)
    assert acks.ranges() == runs_of(entries, mark)
    assert all(((0, entry) in acks) == (entry in entries) for entry in range(12_000))
    acks.mark_delete((0, 6000))
    mark = next(e for e in range(6001, 12_001) if e not in entries) - 1
    assert acks.mark_delete_position == Position(0, mark)
    assert acks.ranges() == runs_of(entries, mark)


def test_the_example_of_the_proposal_takes_64_bytes() -> None:
    # 5,000 ledgers of 50,000 entries, of which the first and the last are acknowledged.
    acks = AckState((0, 0))
    acks.acknowledge((1, 0))
    acks.acknowledge((5000, 49_999))
    encoded = acks.encode()
    assert (encoded.ranges, encoded.size, len(encoded.data)) == (2, 64, 64)
    assert list(RANGE.iter_unpack(encoded.data)) == [(1, -1, 1, 0), (5000, 49_998, 5000, 49_999)]


def test_one_message_of_a_batch_of_a_thousand_is_bits() -> None:
    acks = AckState((1, -1))
    acks.acknowledge_index((1, 0), 0, batch_size=1000)
    acks.acknowledge_index((5000, 49_999), 999, batch_size=1000)
    assert acks.size == 2 * (24 + 16 * 8)
    encoded = acks.encode()
    restored = AckState.restore(
        encoded.mark_delete_position, encoded.data, encoded.ranges, encoded.batches
    )
    assert restored.contains_index((1, 0), 0) and not restored.contains_index((1, 0), 1)
    assert restored.contains_index((5000, 49_999), 999)


def test_the_limit_of_bytes_takes_the_place_of_the_number_of_ranges() -> None:
    acks = AckState(MARK, max_bytes=1024, max_ranges=1)
    for entry in range(1, 81, 2):
        acks.acknowledge((0, entry))
    assert acks.encode().ranges == 32
    acks.set_metadata_bytes(1000)
    encoded = acks.encode()
    assert (encoded.ranges, encoded.ranges_left, encoded.size) == (0, 40, 1000 + 40 * 32)
    acks.set_metadata_bytes(1030)
    assert acks.encode().metadata_left == 6
    acks.configure(max_bytes=None, max_ranges=3)
    assert acks.encode().ranges == 3


def test_what_was_left_out_is_not_acknowledged_after_a_restart_and_nothing_else_changed() -> None:
    acks, entries = scattered(2000, 5)
    acks.configure(max_bytes=4096)
    encoded = acks.encode()
    assert encoded.ranges == 128
    restored = AckState.restore(encoded.mark_delete_position, encoded.data, encoded.ranges, 0)
    kept = acks.ranges()[:128]
    assert restored.ranges() == kept
    gone = {e for e in entries if Position(0, e) > kept[-1][1]}
    assert {e for e in range(6000) if (0, e) not in restored} == set(range(6000)) - entries | gone


@pytest.mark.parametrize(
    "words",
    [
        (0, 5, 0, 3),
        (0, -2, 0, 3),
        (0, -1, 0, 3),
        (0, 2, 0, 3, 0, 3, 0, 4),
        (0, 2, 0, 5, 0, 4, 0, 9),
        (-7, 2, 0, 5),
        (0, 2**63 - 1, 0, 3),
    ],
)
def test_damaged_ranges_are_refused(words: tuple[int, ...]) -> None:
    data = struct.pack(f"<{len(words)}q", *words)
    with pytest.raises(StorageError, match="ascending"):
        AckState.restore(MARK, data, len(words) // 4, 0)


@pytest.mark.parametrize(
    ("words", "batches"),
    [
        ((0, 3, 1, 1), 1),
        ((0, 3, 70, 1), 1),
        ((0, 3, 3, 0), 1),
        ((0, 3, 3, 7), 1),
        ((0, 3, 3, 9), 1),
        ((0, 3, 3), 1),
        ((0, 3, 2**40, 1), 1),
        ((0, 3, 3, 1, 0, 3, 3, 1), 2),
        ((0, 3, 3, 1), 0),
    ],
)
def test_damaged_batches_are_refused(words: tuple[int, ...], batches: int) -> None:
    with pytest.raises(StorageError, match="batches"):
        AckState.restore(MARK, struct.pack(f"<{len(words)}q", *words), 0, batches)


def test_what_contradicts_the_end_of_a_ledger_is_refused() -> None:
    acks = AckState((1, -1))
    acks.acknowledge((1, 5))
    with pytest.raises(InvalidPositionError, match="cannot end"):
        acks.end_ledger(1, 4, 2)
    assert acks.end_ledger(1, 5, 2)
    for refused in (acks.acknowledge, acks.mark_delete):
        with pytest.raises(InvalidPositionError, match="no entry"):
            refused((1, 6))
    with pytest.raises(InvalidPositionError, match="no message"):
        acks.acknowledge_index((1, 3), 4, batch_size=4)
    assert acks.acknowledge((2, 0)) and acks.ranges() == [(Position(1, 5), Position(2, 0))]


def test_limits_outside_the_proposal_are_refused() -> None:
    for size in (1023, 5 * 2**20 + 1):
        with pytest.raises(InvalidSizeError, match="1024"):
            AckState(MARK, max_bytes=size)


def test_whoever_makes_the_state_fit_lets_the_dispatcher_go_on() -> None:
    resumed_in: list[int] = []
    acks = AckState(
        MARK,
        max_bytes=None,
        max_ranges=0,
        pause_dispatch=True,
        on_resume=lambda: resumed_in.append(threading.get_ident()),
    )
    acks.acknowledge((0, 1))
    assert not acks.may_dispatch() and acks.may_dispatch(replay=True)
    assert not acks.may_dispatch(delayed=True) and acks.may_dispatch(delayed=True, replay=True)
    worker = threading.Thread(target=acks.acknowledge, args=((0, 0),))
    worker.start()
    worker.join()
    assert resumed_in == [worker.ident] and acks.may_dispatch()

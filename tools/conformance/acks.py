"""The acknowledgements' side of their traces: one cursor over a log of three ledgers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random

from pulsar_ml import AckState, InvalidPositionError, Position

LOG = {3: 12, 4: 10, 5: 30}  # ledger -> its entries
SIZES = (2, 5, 70)  # messages of an entry that is a batch, by its number modulo three

Range = tuple[int, int, int]  # of one ledger: its first and its last entry


def trace(random: Random, length: int) -> list[str]:
    """Acknowledgements of a log that begins with the ledger 3, or of one with a single ledger.
    Half of the traces have limits that nothing reaches.
    """
    ranges, batches = random.choice((1, 2, 4)), random.choice((0, 1, 3))
    if random.randrange(2):
        ranges, batches = 100, 100
    first = random.choice((3, 5, 5))
    lines = [f"new acks {first} {ranges} {batches} {random.randrange(2)}"]
    ledgers = [ledger for ledger in LOG if ledger >= first]
    for _ in range(length):
        operation = random.choices(
            ["ack", "index", "mark", "fits", "store", "restart"], [30, 20, 1, 4, 5, 3]
        )[0]
        ledger = random.choice(ledgers)
        entry = random.randrange(min(LOG[ledger], random.choice((6, 30))))
        index = random.randrange(SIZES[entry % 3])
        lines.append(
            {
                "ack": f"ack {ledger} {entry}",
                "index": f"index {ledger} {entry} {index}",
                "mark": f"mark {ledger} {entry}",
            }.get(operation, operation)
        )
    return lines


def shown(
    mark: tuple[int, int], ranges: Iterable[Range], batches: Iterable[tuple[int, int, list[int]]]
) -> str:
    """A state as both sides print it."""
    parts = [" ".join([f"{mark[0]}:{mark[1]}", *(f"{a}:{b}-{c}" for a, b, c in ranges)])]
    for ledger, entry, indexes in batches:
        parts.append(" ".join([f"{ledger}:{entry}", *map(str, indexes)]))
    return " | ".join(parts)


def by_ledger(first: tuple[int, int], last: tuple[int, int]) -> list[Range]:
    """The parts of a range that goes over the ends of ledgers."""
    ledgers = [ledger for ledger in LOG if first[0] <= ledger <= last[0]]
    return [
        (
            ledger,
            first[1] if ledger == first[0] else 0,
            last[1] if ledger == last[0] else LOG[ledger] - 1,
        )
        for ledger in ledgers
    ]


class Acks:
    """The acknowledgement state of one cursor, which knows where the ledgers end."""

    def __init__(self, words: Sequence[str]) -> None:
        self.start = int(words[2])
        self.max_ranges, self.max_batches = int(words[3]), int(words[4])
        self.batches: set[tuple[int, int]] = set()
        self.acks = AckState(
            (self.start, -1),
            max_bytes=None,
            max_ranges=self.max_ranges,
            max_batches=self.max_batches,
            pause_dispatch=True,
        )
        self.end_ledgers()

    def end_ledgers(self) -> None:
        ledgers = [ledger for ledger in LOG if ledger >= self.start]
        for ledger, following in pairwise(ledgers):
            self.acks.end_ledger(ledger, LOG[ledger] - 1, following)

    def stored(self) -> AckState:
        """The state that is read back, with limits that leave nothing of it out."""
        encoded = self.acks.encode()
        return AckState.restore(
            encoded.mark_delete_position,
            encoded.data,
            encoded.ranges,
            encoded.batches,
            max_bytes=None,
        )

    def state(self, acks: AckState) -> str:
        ranges = [part for first, last in acks.ranges() for part in by_ledger(first, last)]
        batches = []
        for ledger, entry in sorted(self.batches):
            size = SIZES[entry % 3]
            indexes = [i for i in range(size) if acks.contains_index((ledger, entry), i)]
            if 0 < len(indexes) < size:
                batches.append((ledger, entry, indexes))
        return shown(acks.mark_delete_position, ranges, batches)

    def restart(self) -> None:
        encoded = self.acks.encode()
        self.acks = AckState.restore(
            encoded.mark_delete_position,
            encoded.data,
            encoded.ranges,
            encoded.batches,
            max_bytes=None,
            max_ranges=self.max_ranges,
            max_batches=self.max_batches,
            pause_dispatch=True,
        )
        self.end_ledgers()

    def change(self, operation: str, at: Position, index: Sequence[int]) -> str:
        try:
            if operation == "ack":
                self.acks.acknowledge(at)
            elif operation == "mark":
                if not self.acks.mark_delete(at) and at < self.acks.mark_delete_position:
                    return f"known {self.state(self.acks)}"
            else:
                self.batches.add((at.ledger_id, at.entry_id))
                self.acks.acknowledge_index(at, index[0], batch_size=SIZES[at.entry_id % 3])
        except InvalidPositionError:
            return f"refused {self.state(self.acks)}"
        return f"done {self.state(self.acks)}"

    def __call__(self, words: Sequence[str]) -> str:
        if words[0] == "fits":
            return "true" if self.acks.may_dispatch() else "false"
        if words[0] == "store":
            return self.state(self.stored())
        if words[0] == "restart":
            self.restart()
            return self.state(self.acks)
        ledger, entry, *index = (int(word) for word in words[1:])
        return self.change(words[0], Position(ledger, entry), index)

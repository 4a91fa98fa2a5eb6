"""Acknowledgements followed without either side's code: a set of positions, and what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from tools.conformance.acks import LOG, SIZES, Range, by_ledger, shown

Place = tuple[int, int]
Span = tuple[Place, Place]


class Followed:
    """The acknowledged positions behind the mark, and the messages of batches."""

    def __init__(self, trace: Sequence[str]) -> None:
        words = trace[0].split(" ")
        first, self.max_ranges, self.max_batches = (int(word) for word in words[2:5])
        self.long_arrays = words[5] == "1"
        self.log = [(at, entry) for at in LOG if at >= first for entry in range(LOG[at])]
        self.mark: Place = (first, -1)
        self.acked: set[Place] = set()
        self.batches: dict[Place, set[int]] = {}
        for line in trace[1:]:
            operation, *numbers = line.split(" ")
            self.apply(operation, [int(number) for number in numbers])

    def apply(self, operation: str, numbers: Sequence[int]) -> None:
        if operation == "restart":
            self.restart()
        if not numbers:
            return
        at = (numbers[0], numbers[1])
        if operation == "mark":
            self.acked.update(place for place in self.log if place <= at)
        elif operation == "ack":
            self.acked.add(at)
        elif at not in self.acked and at > self.mark:
            batch = self.batches.setdefault(at, set())
            batch.add(numbers[2])
            if len(batch) == SIZES[at[1] % 3]:
                self.acked.add(at)
        self.advance()

    def advance(self) -> None:
        for place in self.log:
            if place > self.mark:
                if place not in self.acked:
                    break
                self.mark = place
        self.acked = {place for place in self.acked if place > self.mark}
        self.batches = {
            place: batch
            for place, batch in self.batches.items()
            if place > self.mark and place not in self.acked
        }

    def restart(self) -> None:
        kept = [part for span in self.spans()[: self.max_ranges] for part in by_ledger(*span)]
        self.acked = {(at, entry) for at, first, last in kept for entry in range(first, last + 1)}
        self.batches = dict(sorted(self.batches.items())[: self.max_batches])

    def spans(self) -> list[Span]:
        """The ranges behind the mark; one goes over the end of a ledger."""
        found: list[Span] = []
        before = None
        for place in self.log:
            if place in self.acked:
                last = found[-1][1] if found else None
                found[-1:] = (
                    [(found[-1][0], place)]
                    if last is not None and last == before
                    else [*found[-1:], (place, place)]
                )
            before = place
        return found

    def parts(self) -> list[Range]:
        """The ranges of each ledger."""
        return [part for span in self.spans() for part in by_ledger(*span)]

    def state(self, ranges: Sequence[Range]) -> str:
        batches = [(*at, sorted(batch)) for at, batch in sorted(self.batches.items())]
        return shown(self.mark, ranges, batches[: self.max_batches])

    def stored(self) -> str:
        """The part that the limits leave, as the contract has it: the lowest ranges and batches."""
        spans = self.spans()[: self.max_ranges]
        return self.state([part for span in spans for part in by_ledger(*span)])

    def stored_by_ledger(self, more: int) -> str:
        """The part of a release that counts the ranges of each ledger, and stores so many more."""
        return self.state(self.parts()[: self.max_ranges + more])

    def stored_long_arrays(self, version: str) -> str:
        """The part of a release that stores whole ledgers, and counts their entries as ranges:
        5.0.1 those of this ledger and the ones before it, 4.2.4 those of the ones before it.
        """
        parts = self.parts()
        ledgers = sorted({ledger for ledger, _, _ in parts})
        entries = [sum(c - b + 1 for a, b, c in parts if a == ledger) for ledger in ledgers]
        counted = [0, *accumulate(entries)] if version == "4.2.4" else accumulate(entries)
        kept = [
            ledger
            for ledger, total in zip(ledgers, counted, strict=False)
            if total <= self.max_ranges
        ]
        if not kept:
            return self.stored_by_ledger(0)
        return self.state([part for part in parts if part[0] in kept])

    def fits(self) -> bool:
        return len(self.spans()) <= self.max_ranges and len(self.batches) <= self.max_batches


def listed(version: str, trace: Sequence[str], ours: str, theirs: str) -> str | None:
    """The name of the listed difference of acknowledgements, if any."""
    operation = trace[-1]
    followed = Followed(trace[:-1])
    many = len(followed.parts()) > followed.max_ranges
    if operation == "fits":
        if ours != str(followed.fits()).lower() or theirs == ours:
            return None
        if version == "4.2.4" and ours == "false" and not many:
            return "acks-fit-batches"
        return "acks-ledger-ends" if ours == "true" and many else None
    if operation not in ("store", "restart") or ours != followed.stored():
        return None
    more = 1 if version == "4.2.4" else 0
    if followed.long_arrays and theirs == followed.stored_long_arrays(version):
        return "acks-long-arrays"
    if not followed.long_arrays and theirs == followed.stored_by_ledger(more):
        return "acks-one-more" if more and many else "acks-ledger-ends"
    return None

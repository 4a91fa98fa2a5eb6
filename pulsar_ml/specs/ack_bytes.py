"""The bytes of an acknowledgement state as words: damage to them, and what comes back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

MOST = 2**63 - 1
LARGEST, SMALLEST = 5, 6  # changes that name a number
COUNTS_RIGHT = 4
# Wrong counts beside the bytes: ranges, batches, words.
WRONG = (
    (0, 0, 0),
    (1, 0, 0),
    (-1, 0, 0),
    (0, 1, 0),
    (0, -1, 0),
    (1, -1, 0),
    (-1, 1, 0),
    (0, 0, -1),
)

At = tuple[int, int]
Stored = tuple[list[int], int, int]  # words, and counts of ranges and batches
Ranges = list[tuple[At, At]]
Batches = dict[At, tuple[int, int]]  # sizes, and acknowledged indexes as bits


def encoded(
    ranges: Sequence[Sequence[At]], batches: Mapping[At, Collection[int]], size: int
) -> Stored:
    """A range is the position before its first entry, and its last entry."""
    words: list[int] = []
    for entries in ranges:
        (ledger, first), last = entries[0], entries[-1]
        words += [ledger, first - 1, *last]
    for at, indexes in batches.items():
        words += [*at, size, sum(1 << index for index in indexes)]
    return words, len(ranges), len(batches)


def damaged(stored: Stored, word: int, change: int, counts: int) -> Stored:
    words, ranges, batches = stored
    if words:
        at = word % len(words)
        named = {LARGEST: MOST, SMALLEST: -MOST - 1}
        words = [*words[:at], named.get(change, words[at] + change), *words[at + 1 :]]
    more_ranges, more_batches, more_words = WRONG[max(0, counts - COUNTS_RIGHT)]
    length = max(0, len(words) + more_words)
    return words[:length], ranges + more_ranges, batches + more_batches


def decoded(
    mark: At, words: list[int], n_ranges: int, n_batches: int
) -> tuple[Ranges, Batches] | None:
    """The ranges and batches, or None where no state has these bytes."""
    after = 4 * n_ranges
    if not 0 <= after <= len(words) or n_batches < 0:
        return None
    ranges = ranges_of(mark, words[:after])
    if ranges is None:
        return None
    batches = batches_of(mark, ranges, words[after:], n_batches)
    return None if batches is None else (ranges, batches)


def ranges_of(mark: At, words: list[int]) -> Ranges | None:
    """Ranges that ascend behind the mark, none of which goes on where the one before ends."""
    found: Ranges = []
    passed = mark
    for at in range(0, len(words), 4):
        ledger, before, *end = words[at : at + 4]
        first, last = (ledger, before + 1), (end[0], end[1])
        named = ledger >= 0 and -1 <= before < MOST and last[1] >= 0
        if not named or not passed < first <= last or (ledger, before) == passed:
            return None
        found.append((first, last))
        passed = last
    return found


def batches_of(mark: At, ranges: Ranges, words: list[int], count: int) -> Batches | None:
    """Batches that ascend outside of the ranges, each with an open and an acknowledged index."""
    found: Batches = {}
    passed = mark
    for _ in range(count):
        if len(words) < 3:
            return None
        ledger, entry, size = words[:3]
        length = 3 + (size + 63) // 64
        at = ledger, entry
        if not 2 <= size < 2**31 or len(words) < length or entry < 0 or at <= passed:
            return None
        bits = sum((word % 2**64) << 64 * place for place, word in enumerate(words[3:length]))
        acknowledged = bits.bit_count()
        inside = any(first <= at <= last for first, last in ranges)
        if inside or not 0 < acknowledged < size or bits >> size:
            return None
        found[at] = size, bits
        passed = at
        words = words[length:]
    return None if words else found

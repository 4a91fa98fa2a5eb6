"""Mistakes in structures/ack_codec.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/ack_codec.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H38",
        title="the number of batches is not compared with its limit",
        origin="#26499, #26553",
        file=FILE,
        old="""
if acks.batches.count > limits.max_batches:
    return False
""",
        new="pass",
        suite="ack_state",
        breaks="AS-1, AC-1",
    ),
    Mutant(
        id="AK03",
        title="ranges up to the limit do not fit",
        origin="port",
        file=FILE,
        old="return acks.ranges.count <= limits.max_ranges",
        new="return acks.ranges.count < limits.max_ranges",
        suite="ack_state",
        breaks="AS-1",
        # Long programs soon have acknowledged the whole small log.
        mode="sc",
        within=8_000,
    ),
    Mutant(
        id="AK04",
        title="the lowest ranges are omitted instead of the highest",
        origin="port",
        file=FILE,
        old="stored = <AckRange*>blocks_at(&acks.ranges, spot)",
        new="""
if i == 0:
    for word in range(plan.ranges_left):
        spot = blocks_next(&acks.ranges, spot)
stored = <AckRange*>blocks_at(&acks.ranges, spot)
""",
        suite="ack_state",
        breaks="AC-2",
    ),
    Mutant(
        id="AK05",
        title="omitted ranges are not counted",
        origin="port; the original counts in newer revisions only",
        file=FILE,
        old="plan.ranges_left = acks.ranges.count - plan.ranges",
        new="plan.ranges_left = 0",
        suite="ack_state",
        breaks="AC-1, AC-2",
        # Long programs soon have acknowledged the whole small log.
        mode="sc",
        within=8_000,
    ),
    Mutant(
        id="AK06",
        title="the mark is stored beyond an entry if ranges are omitted",
        origin="port",
        file=FILE,
        old="plan.mark = acks_mark(acks)",
        new="""
plan.mark = acks_mark(acks)
if acks.ranges.count > most:
    plan.mark.entry_id += 1
""",
        suite="ack_state",
        breaks="AC-2",
    ),
    Mutant(
        id="AK07",
        title="the position before a range is read as its first",
        origin="port",
        file=FILE,
        old="read.first = position(get_word(data), lower + 1 if lower < INT64_MAX else 0)",
        new="read.first = position(get_word(data), max(lower, 0))",
        suite="ack_state",
        breaks="AC-2",
    ),
    Mutant(
        id="AK08",
        title="batches are stored beyond the limit of bytes",
        origin="port",
        file=FILE,
        old="""
if batch_stored(batch.size) > room - plan.bytes:
    break
""",
        new="pass",
        suite="ack_state",
        breaks="AC-1",
        # Long programs soon have acknowledged the whole small log.
        mode="sc",
        within=48_000,
    ),
)

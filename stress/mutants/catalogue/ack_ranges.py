"""Mistakes in structures/ack_ranges.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/ack_ranges.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="AK01",
        title="the mark stops before the range that it touches",
        origin="port",
        file=FILE,
        old="""
touched = <AckRange*>blocks_at(&acks.ranges, blocks_first())
if touched is not NULL and position_equal(touched.first, acks_after(acks, up_to)):
    up_to = touched.last
    blocks_remove(&acks.ranges, blocks_first())
""",
        new="pass",
        suite="ack_state",
        breaks="AR-1",
    ),
    Mutant(
        id="AK02",
        title="a batch that became a whole entry stays",
        origin="port",
        file=FILE,
        old="acks_forget_batch(acks, at)",
        new="pass",
        suite="ack_state",
        breaks="AC-2",
    ),
)

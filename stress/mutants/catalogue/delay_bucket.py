"""Mistakes in structures/delay_bucket.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/delay_bucket.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="L06",
        title="buckets round down when delivery is strict",
        origin="#24927, and #25996",
        file=FILE,
        old="if not rule.strict or below == deliver_at:\n    return below",
        new="return below",
        suite="delayed_manager",
        breaks="I93",
    ),
    Mutant(
        id="M65",
        title="rounding up overflows at the end of time",
        origin="port",
        file=FILE,
        old="return add_saturating(below, rule.precision)",
        new="return <int64_t>(<uint64_t>below + <uint64_t>rule.precision)",
        cimports="from libc.stdint cimport uint64_t",
        suite="delayed_tracker",
        breaks="I93",
    ),
)

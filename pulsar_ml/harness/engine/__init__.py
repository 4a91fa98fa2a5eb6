"""The controlled world: every interleaving and every legal stale read of a program, under one
integer.

Checked modules (``pulsar_ml.harness.building.checked``) call the engine's native functions, so it
is loaded with its symbols visible to modules that come after it: import this package first, or use
:func:`load_checked`. One engine serves a process, one explorer at a time.
"""

from __future__ import annotations

import os
import sys

_flags = sys.getdlopenflags()
sys.setdlopenflags(_flags | os.RTLD_GLOBAL)
try:
    from pulsar_ml.harness.engine._engine import (
        BUFFER,
        CHOICES,
        ENDS,
        FAULTS,
        LEAST_STORES,
        MODES,
        MOST_STORES,
        OFFERED,
        OPS,
        ORDERS,
        REDUCING,
        REUSE,
        SAMPLERS,
        SEARCHES,
        SPINS,
        STEP_LIMIT,
        STORES,
        STRATEGIES,
        TURNS,
        Explorer,
        beat_into,
        executions_left,
        keep_blocks,
        locate,
        match_places_by,
        meetings,
        pairs_apart,
        part_words,
        places_in,
        steps_in,
        symbol_at,
    )
finally:
    sys.setdlopenflags(_flags)

__all__ = [
    "BUFFER",
    "CHOICES",
    "ENDS",
    "FAULTS",
    "LEAST_STORES",
    "MODES",
    "MOST_STORES",
    "OFFERED",
    "OPS",
    "ORDERS",
    "REDUCING",
    "REUSE",
    "SAMPLERS",
    "SEARCHES",
    "SPINS",
    "STEP_LIMIT",
    "STORES",
    "STRATEGIES",
    "TURNS",
    "Explorer",
    "beat_into",
    "executions_left",
    "keep_blocks",
    "locate",
    "match_places_by",
    "meetings",
    "pairs_apart",
    "part_words",
    "places_in",
    "steps_in",
    "symbol_at",
]

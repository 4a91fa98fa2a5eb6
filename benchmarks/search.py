"""Search in numbers: guidance beside sampling alone, and searches to the end beside loom."""

from __future__ import annotations

from benchmarks.peers import genmc, loom
from benchmarks.searches import classes, guidance

BENCHMARKS = (*guidance.BENCHMARKS, *loom.ROWS, *genmc.ROWS, *classes.ROWS)

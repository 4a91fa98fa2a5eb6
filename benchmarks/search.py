"""Search in numbers: guidance beside sampling alone, and searches to the end beside loom."""

from __future__ import annotations

from benchmarks.peers import loom
from benchmarks.searches import guidance

BENCHMARKS = (*guidance.BENCHMARKS, *loom.ROWS)

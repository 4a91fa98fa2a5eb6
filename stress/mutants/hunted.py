"""What the engine hunts, and within how many executions of mode c11 each of its seeds must find it."""

from __future__ import annotations

from collections.abc import Mapping

BUDGETS: Mapping[str, int] = {
    "H01": 4_000,
    "H08": 20_000,
    "M01": 4_000,
    "M02": 4_000,
    "M02b": 4_000,
    "M06": 4_000,
    "M09b": 4_000,
    "M09c": 20_000,
    "M11": 6_000,
    "M11b": 6_000,
    "M14b": 4_000,
    "Q01": 4_000,
}

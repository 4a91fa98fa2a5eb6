"""Says what the partial-order reduction of a search did, and why it was given up."""

from __future__ import annotations

from collections.abc import Mapping

REDUCE = "reduce"  # the strategy
# Bits of the statistic "unreduced", in the order of the engine's.
REASONS = (
    "mode tso",
    "loops that wait, yields or sleeps",
    "time-outs or clocks",
    "locks other than mutexes and conditions",
    "races that are allowed or not detected",
    "a check of lock-freedom",
    "more than 16 threads",
    "Python code",
    "random numbers or keys of thread-specific data",
    "no memory",
)


def reasons(unreduced: int) -> str:
    """Name the reasons of a statistic "unreduced"; "" for a search that was reduced."""
    return ", ".join(reason for bit, reason in enumerate(REASONS) if unreduced >> bit & 1)


def remark_of(statistics: Mapping[str, int]) -> str:
    """Say that a search went on without the reduction; "" when it did not."""
    why = reasons(statistics["unreduced"])
    return f"searched without reduction: {why}" if why else ""


def summary_of(complete: int, classes: int, blocked: int) -> str:
    """Describe how close the executions of reduced searches are to one for each class."""
    return (
        f"reduced searches: {complete:,} whole executions for {classes:,} classes; {blocked:,} "
        "left early because they were like earlier ones"
    )

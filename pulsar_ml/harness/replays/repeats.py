"""Executions that are made again, which must be equal."""

from __future__ import annotations

from typing import Any

from pulsar_ml.errors import NotRepeatedError
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.symbols import describe_pc


def recheck(explorer: Explorer, number: int) -> None:
    """Repeat the last execution; NotRepeatedError names the first difference."""
    before = explorer.hashes()
    explorer.again(number)
    if explorer.hashes() == before:
        return
    first = explorer.trace()
    explorer.again(number)
    raise NotRepeatedError(
        f"execution {number} was not the same when made again: {divergence(first, explorer.trace())}"
    )


def divergence(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> str:
    """Describe the first difference of two traces."""
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        for key in ("thread", "op", "value", "order"):
            if a[key] != b[key]:
                place = f", at {describe_pc(a['pc'])}" if a["pc"] else ""
                return (
                    f"event {index} of thread {a['thread']}: {key} is {a[key]!r}, then {b[key]!r}"
                    f"{place}"
                )
    if len(first) != len(second):
        return f"{len(first)} events, then {len(second)}"
    return "two recorded executions agree, so recording itself changes what the code does"

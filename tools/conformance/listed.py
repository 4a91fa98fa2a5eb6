"""Differences that are known: docs/conformance.md has each, with who is right and why.

A difference is a listed one only if its release, its operation and an independent answer agree: the
position of each cursor, or the requests that wait, are followed here without either side's code.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.conformance.delayed import listed as listed_delayed
from tools.conformance.right_acks import listed as listed_acks

LISTED = (
    "active-rank",
    "heap-slowest",
    "limiter-behind-failed",
    "manager-resize",
    "acks-one-more",
    "acks-long-arrays",
    "acks-ledger-ends",
    "acks-fit-batches",
    "delayed-smaller-tick",
    "delayed-clear",
)


def positions(trace: Sequence[str]) -> dict[str, int]:
    """The position of each cursor after the trace."""
    found: dict[str, int] = {}
    for line in trace[1:]:
        words = line.split(" ")
        if words[0] in ("add", "update"):
            found[words[1]] = int(words[2])
        elif words[0] == "remove":
            found.pop(words[1], None)
    return found


def right_answer(trace: Sequence[str]) -> str | None:
    """The answer of the last line of a trace of cursors, from their positions alone."""
    words = trace[-1].split(" ")
    now = positions(trace)
    slowest = f"3:{min(now.values())}" if now else "none"
    if words[0] == "rank":
        return str(sum(at <= now[words[1]] for at in now.values()))
    if words[0] == "slowest":
        return slowest
    if trace[0] == "new heap" and words[0] == "update":
        before = positions(trace[:-1])
        return f"3:{min(before.values())} {slowest}"
    return None


def evicted_at_once(words: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """True if the caches were too large for a new size, and only ours made one size pass for it."""
    maximum, watermark = int(words[1]), int(words[2]) / 100
    return (
        int(theirs[1]) > int(maximum * 0.98)
        and int(ours[1]) <= int(maximum * watermark)
        and ours[-3] == theirs[-3]
        and int(ours[-1]) == int(theirs[-1]) + 1
    )


def listed(version: str, trace: Sequence[str], ours: str, theirs: str) -> str | None:
    """The name of the listed difference that the last line of a trace shows, if any."""
    subject, operation = trace[0].split(" ")[1], trace[-1].split(" ")[0]
    if subject == "delayed":
        return listed_delayed(version, trace, ours, theirs)
    if subject == "acks":
        return listed_acks(version, trace, ours, theirs)
    if subject in ("active", "heap") and ours == right_answer(trace) and theirs != ours:
        if subject == "active" and operation == "rank" and version == "4.2.4":
            return "active-rank"
        if subject == "heap" and operation in ("slowest", "update"):
            return "heap-slowest"
    if (
        (subject, operation) == ("manager", "resize")
        and trace[0].endswith(" 0")
        and evicted_at_once(trace[-1].split(" "), ours.split(" "), theirs.split(" "))
    ):
        return "manager-resize"
    if subject == "limiter" and operation == "pass" and trace[0].endswith(" 0"):
        # The release says that requests failed and grants none; here the same requests failed and
        # those behind them that fit were granted.
        our_answers = ours.split(" ")[2].split(",")
        their_answers = theirs.split(" ")[2].split(",")
        extra = [answer for answer in our_answers if answer not in their_answers]
        missing = [answer for answer in their_answers if answer not in our_answers]
        if not missing and extra and not any(answer.endswith("=failed") for answer in extra):
            return "limiter-behind-failed"
    return None

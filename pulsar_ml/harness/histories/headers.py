"""The header of a history on disk: its signatures, its values, and where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.histories.history import (
    CRASHED,
    RESULTS,
    RETURNED,
    VALUE,
    History,
    Signature,
    as_value,
    frozen,
)

KIND = "pulsar_ml history"
VERSION = 1


def header(history: History) -> dict[str, Any]:
    threads = {"threads": list(history.threads)} if history.threads else {}
    return {
        "kind": KIND,
        "version": VERSION,
        "source": history.source,
        "subject": history.subject,
        "settings": dict(history.settings),
        "signatures": [list(signature) for signature in history.signatures],
        "values": list(history.values),
        **threads,
    }


# The keys of a header; in JSON Lines the number of operations stands in place of the values.
KEYS: Mapping[str, Any] = {
    "source": str,
    "subject": str,
    "settings": Mapping[str, int],
    "signatures": tuple[tuple[str, int, str], ...],
    "threads": tuple[str, ...],
}
OPTIONAL = frozenset({"threads"})  # where numbers are the names of threads
TABLE_KEYS = {**KEYS, "values": list}
LINES_KEYS = {**KEYS, "operations": int}


def history_with(content: Mapping[str, Any], records: Any, name: str) -> History:
    """Return the history of a header and its records; BadRecordError when they do not fit."""
    try:
        values = tuple(as_value(value) for value in content["values"])
    except UsageError as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None
    history = History(
        tuple(Signature(*signature) for signature in content["signatures"]),
        frozen(records),
        values,
        content["source"],
        content["subject"],
        content["settings"],
        content.get("threads", ()),
    )
    check_records(history, name)
    return history


def check_records(history: History, name: str) -> None:
    records = history.records
    wrong = None
    if any(result not in RESULTS for _, _, result in history.signatures):
        wrong = "it has a signature with an unknown kind of result"
    elif len(records):
        codes, endings = records["operation"], records["ending"]
        threads, names = records["thread"], len(history.threads)
        if codes.min() < 0 or codes.max() >= len(history.signatures):
            wrong = "it names an operation that it does not describe"
        elif names and (threads.min() < 0 or threads.max() >= names):
            wrong = "it names a thread that it does not describe"
        elif endings.min() < RETURNED or endings.max() > CRASHED:
            wrong = "it has an unknown ending"
        elif np.any(records["returned"] < records["invoked"]):
            wrong = "an operation returned before it was invoked"
        elif pair := overlapping(records):
            wrong = (
                f"operations {pair[0]} and {pair[1]} of thread "
                f"{history.thread_name(int(threads[pair[0]]))} overlap; a thread is inside one "
                "operation at a time"
            )
        elif VALUE in {signature.result for signature in history.signatures}:
            words = np.append(
                records["arguments"].ravel(), records["result"][endings == RETURNED, 0]
            )
            if words.max(initial=-1) >= len(history.values):
                wrong = "it refers to a value that it does not have"
    if wrong:
        raise BadRecordError(f"{name} is damaged: {wrong}")


def overlapping(records: NDArray[np.void]) -> tuple[int, int] | None:
    """Return two operations of one thread that overlap and returned; None: there are none."""
    ended = np.flatnonzero(records["ending"] == RETURNED)
    order = ended[np.lexsort((ended, records["invoked"][ended], records["thread"][ended]))]
    thread, invoked = records["thread"][order], records["invoked"][order]
    wrong = np.flatnonzero(
        (thread[1:] == thread[:-1]) & (invoked[1:] < records["returned"][order][:-1])
    )
    return (int(order[wrong[0]]), int(order[wrong[0] + 1])) if len(wrong) else None

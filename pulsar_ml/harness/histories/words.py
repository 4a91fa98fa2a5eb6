"""Encodes values of a history as the words of other signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import (
    ABSENT,
    ANSWER,
    FLAG,
    RETURNED,
    VALUE,
    WORD,
    History,
    Signature,
)


def with_signatures(
    history: History, signatures: Sequence[Signature]
) -> tuple[NDArray[np.void], list[Any]]:
    """Return records and values for ``signatures``, of a history whose own are all "value".

    Raises ValueError, TypeError or OverflowError for a value that does not fit its signature.
    """
    numbers = {signature.name: code for code, signature in enumerate(signatures)}
    records = history.records.copy()
    used = sorted(set(records["operation"].tolist()))
    for name in (history.signatures[code].name for code in used):
        if name not in numbers:
            raise ValueError(f"operation {name!r} is not among the signatures")
    codes = np.array([numbers.get(one.name, -1) for one in history.signatures], np.int32)
    if len(records):
        records["operation"] = codes[records["operation"]]
    encoded = np.array([one.result != VALUE for one in signatures], np.bool_)
    for index in np.flatnonzero(encoded[records["operation"]]).tolist():
        call = history.call(index)
        signature = signatures[numbers[call.name]]
        if len(call.arguments) != signature.arguments:
            raise ValueError(f"{call} should have {signature.arguments} arguments")
        words: list[Any] = list(call.arguments)
        records["arguments"][index] = words + [0] * (3 - len(words))
        ended = history.records["ending"][index] == RETURNED
        records["result"][index] = result_words(signature.result, call.result) if ended else [0] * 5
    return records, list(history.values)


def result_words(kind: str, result: Any) -> list[int]:
    if kind == WORD:
        return [ABSENT if result is None else int(result), 0, 0, 0, 0]
    if kind == FLAG:
        return [int(bool(result)), 0, 0, 0, 0]
    if kind == ANSWER:
        status, words = result
        return [int(status), *(int(word) for word in words)]
    return [0] * 5

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
    for index in range(len(history)):
        call = history.call(index)
        if call.name not in numbers:
            raise ValueError(f"operation {call.name!r} is not among the signatures")
        signature = signatures[numbers[call.name]]
        records["operation"][index] = numbers[call.name]
        if signature.result == VALUE:
            continue
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

"""Histories of answers that tests of models write as rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pulsar_ml.harness.histories.history import ANSWER, RECORD, RETURNED, History, Signature, frozen

# thread, operation, arguments, answer, invoked, returned
Row = tuple[int, str, tuple[int, ...], tuple[int, tuple[int, ...]], int, int]


def history(rows: Sequence[Row], settings: dict[str, int]) -> History:
    """The history of these rows, for an instance with these settings."""
    names = sorted({row[1] for row in rows})
    signatures = tuple(
        Signature(name, max(len(row[2]) for row in rows if row[1] == name), ANSWER)
        for name in names
    )
    records = [
        (
            thread,
            names.index(name),
            [*values, 0, 0, 0][:3],
            [status, *words],
            start,
            end,
            RETURNED,
            0,
        )
        for thread, name, values, (status, words), start, end in rows
    ]
    return History(
        signatures, frozen(np.array(records, dtype=RECORD)), (), "test", "test", settings
    )

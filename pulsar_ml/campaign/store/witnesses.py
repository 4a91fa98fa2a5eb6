"""Bounds the violations that a run without an end stores.

Counts go on; of each signature only a fixed number of records is kept, with the smallest seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsar_ml.campaign.store.store import waves_of


class Witnesses:
    """Counts the records of each signature; ``bound`` passes at most ``most`` of each."""

    def __init__(self, most: int, before: Iterable[pa.Table] = ()) -> None:
        """``before`` holds the rows of earlier waves: columns signature, seed and replay."""
        self._most = most
        self._kept: Counter[str] = Counter()
        self._smallest: dict[str, int] = {}
        for table in before:
            whole = table.filter(pc.not_equal(table["replay"], ""))
            for signature, seed in zip(
                whole["signature"].to_pylist(), whole["seed"].to_pylist(), strict=True
            ):
                self._count(signature, seed)

    def bound(self, violations: pa.Table) -> pa.Table:
        """Return the rows of a wave that are to be written.

        A row's ``unlisted`` counts the rows that are dropped beside it. Where a signature has all
        its records, a row without a record holds the count. The smallest seed so far is always
        kept, also from a late chunk, because the run shows its record.
        """
        order = pc.sort_indices(
            violations, [(name, "ascending") for name in ("signature", "seed", "message", "replay")]
        ).to_pylist()
        signatures = violations["signature"].to_pylist()
        seeds = violations["seed"].to_pylist()
        unlisted = violations["unlisted"].to_pylist()
        dropped: set[int] = set()
        blank: set[int] = set()
        holder = -1
        for row in order:
            signature, seed = signatures[row], seeds[row]
            if self._kept[signature] < self._most or seed < self._smallest[signature]:
                self._count(signature, seed)
                holder = row
            elif holder >= 0 and signatures[holder] == signature:
                dropped.add(row)
                unlisted[holder] += 1 + unlisted[row]
            else:
                blank.add(row)
                holder = row
        replays = [
            "" if row in blank else text
            for row, text in enumerate(violations["replay"].to_pylist())
        ]
        columns = {"replay": replays, "unlisted": unlisted}
        for name, values in columns.items():
            place = violations.schema.get_field_index(name)
            field = violations.schema.field(place)
            violations = violations.set_column(place, field, pa.array(values, field.type))
        listed = [row for row in range(len(violations)) if row not in dropped]
        return violations.take(pa.array(listed, pa.int64()))

    def _count(self, signature: str, seed: int) -> None:
        self._kept[signature] += 1
        self._smallest[signature] = min(seed, self._smallest.get(signature, seed))


def witnesses_of(directory: Path, most: int) -> Witnesses:
    """Count the records in the visible waves of a run."""
    columns = ["signature", "seed", "replay"]
    paths = [directory / "violations" / name for name in waves_of(directory)]
    return Witnesses(
        most, (pq.read_table(path, columns=columns) for path in paths if path.exists())
    )

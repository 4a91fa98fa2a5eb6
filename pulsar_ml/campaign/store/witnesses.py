"""Bounds what a run without an end keeps of violations: the counts go on, and of each signature so many
records are kept, those of the smallest seeds.
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
    """How many records of each signature a run has; ``bound`` lets no more than ``most`` of each in."""

    def __init__(self, most: int, before: Iterable[pa.Table] = ()) -> None:
        """``before`` are the rows of earlier waves, of which the columns signature, seed and replay count."""
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
        """The rows of a wave that are to be written.

        ``unlisted`` of a row counts those beside it that are not. Where a signature has its records already,
        a row without one holds the count. A seed that is smaller than all before, as of a chunk that runs
        late, is kept in any case: it is the one whose record the run shows.
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
    """Of the waves that are visible in a run's directory."""
    columns = ["signature", "seed", "replay"]
    paths = [directory / "violations" / name for name in waves_of(directory)]
    return Witnesses(
        most, (pq.read_table(path, columns=columns) for path in paths if path.exists())
    )

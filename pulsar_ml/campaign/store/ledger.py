"""The ledger of a run: one row of sums for each chunk.

Totals of a run come from its ledger, so that no trial is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_ml.campaign.store.schema import CHUNKS, SUMMED, VERDICTS
from pulsar_ml.campaign.store.sketch import union
from pulsar_ml.harness.engine import SEARCHES

_SAME = ("run_id", "chunk_id", "suite", "build_id", "engine", "mode", "strategy")


class Ids(Set[int]):
    """A set of small numbers, one bit each: ids of a billion seeds' chunks take some 100 kB."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self._count = 0

    def add(self, number: int) -> None:
        """Add a number, 0 or more."""
        place, bit = number >> 3, 1 << (number & 7)
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 - len(self._bits)))
        self._count += not self._bits[place] & bit
        self._bits[place] |= bit

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int) or number < 0 or number >> 3 >= len(self._bits):
            return False
        return bool(self._bits[number >> 3] >> (number & 7) & 1)

    def __iter__(self) -> Iterator[int]:
        return (number for number in range(8 * len(self._bits)) if number in self)

    def __len__(self) -> int:
        return self._count


def ledger_of(rows: pa.Table, violations: pa.Table | None = None) -> pa.Table:
    """Make rows of ``CHUNKS`` from the trials of complete chunks.

    ``rows`` have the schema ``ROW``, or ``TRIALS`` with ``violations`` given separately; then wall
    times are the times inside trials, attempts are 0 and sketches are empty.
    """
    table = rows.append_column("proved", pc.cast(pc.not_equal(rows["exhausted"], ""), pa.int64()))
    for verdict in VERDICTS:
        is_it = pc.cast(pc.equal(rows["verdict"], verdict), pa.int64())
        table = table.append_column(f"is_{verdict}", is_it)
    idle = pc.equal(rows["verdict"], "nothing_exercised")
    in_order = pc.is_in(rows["strategy"], pa.array(SEARCHES, rows.schema.field("strategy").type))
    table = table.append_column("told", pc.if_else(pc.or_(idle, in_order), 0, rows["executions"]))
    if "violations" in rows.column_names:
        found = pc.list_value_length(rows["violations"])
    else:
        found = _of_each(rows, violations)
        table = table.append_column("wall_us", rows["duration_us"])
        table = table.append_column("attempt", pa.repeat(pa.scalar(0, pa.int32()), len(rows)))
    table = table.append_column("found", pc.cast(found, pa.int64()))
    counts = {f"is_{verdict}": verdict for verdict in VERDICTS}
    counts |= {
        "found": "violations",
        "told": "telling",
        "proved": "exhausted",
        "duration_us": "busy_us",
    }
    counts |= {name: name for name in (*SUMMED, "wall_us")}
    sums = table.group_by(_SAME, use_threads=False).aggregate(
        [("seed", "min"), ("seed", "max"), ("seed", "count"), ("attempt", "max"), ("host", "first")]
        + [("finished_at", "max")]
        + [(name, "sum") for name in counts]
    )
    columns = {name: sums[name] for name in _SAME}
    columns |= {"seed_lo": sums["seed_min"], "seed_hi": pc.add(sums["seed_max"], 1)}
    columns |= {
        "trials": sums["seed_count"],
        "attempt": sums["attempt_max"],
        "host": sums["host_first"],
    }
    columns |= {"finished_at": sums["finished_at_max"]}
    columns |= {target: sums[f"{source}_sum"] for source, target in counts.items()}
    keys = list(
        zip(*(sums[name].to_pylist() for name in ("chunk_id", "suite", "strategy")), strict=True)
    )
    sketches = _sketches(rows)
    columns["sketch"] = pa.array([sketches.get(key, ()) for key in keys], pa.list_(pa.int64()))
    return pa.table({name: columns[name] for name in CHUNKS.names}).cast(CHUNKS)


def _sketches(rows: pa.Table) -> dict[tuple[int, str, str], tuple[int, ...]]:
    """Return the sketch of each chunk that has one."""
    if "sketch" not in rows.column_names:
        return {}
    some = rows.select(["chunk_id", "suite", "strategy", "sketch"])
    some = some.filter(pc.greater(pc.list_value_length(some["sketch"]), 0))
    parts: dict[tuple[int, str, str], list[list[int]]] = {}
    for line in some.to_pylist():
        parts.setdefault((line["chunk_id"], line["suite"], line["strategy"]), []).append(
            line["sketch"]
        )
    return {key: union(sketches) for key, sketches in parts.items()}


def _of_each(trials: pa.Table, violations: pa.Table | None) -> pa.Array:
    """Count the violations of each trial."""
    if violations is None or not len(violations):
        return pa.repeat(pa.scalar(0, pa.int64()), len(trials))
    keys = ["chunk_id", "suite", "strategy", "seed"]
    counts = violations.group_by(keys).aggregate([("message", "count")])
    place = trials.select(keys).append_column("place", pa.array(range(len(trials)), pa.int64()))
    joined = place.join(counts, keys).sort_by("place")
    return pc.fill_null(joined["message_count"], 0)

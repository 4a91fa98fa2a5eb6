"""Executors merge the files of a wave and group its violations by signature.

Whatever the number of rows, the driver gets one row for each file and one for each signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsar_ml.campaign.store.merge import Group, Summary, add_violations
from pulsar_ml.campaign.store.schema import CHUNKS, VIOLATIONS
from pulsar_ml.campaign.store.staging import BATCH_ROWS, StagedFiles, in_parts, merge_part, path_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXTS = ("signature", "suite", "invariant", "message", "phase", "replay")
GROUPS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(n, pa.int64()) for n in ("count", "seed")),
    ]
)
MERGED = pa.schema([pa.field("part", pa.int64()), pa.field("name", pa.string())])
WITNESS = ("seed", "message", "replay", "suite", "invariant", "phase")  # the smallest in this order


def merged_parts(
    session: SparkSession, directory: Path, ledger: pa.Table, name: str
) -> tuple[StagedFiles, ...]:
    """Merges a wave's files on executors, a task for each part; ``ledger`` names valid files."""
    from pyspark.sql.pandas.types import from_arrow_schema

    parts = in_parts(ledger)
    session.sparkContext.setJobGroup(name, name, True)
    frame = session.range(0, len(parts), 1, len(parts)).mapInArrow(
        merging(str(directory), parts), from_arrow_schema(MERGED)
    )
    places = {line["part"]: line["name"] for line in frame.toArrow().to_pylist()}
    result = []
    for number, names in enumerate(parts):
        of_part = pc.is_in(ledger["file"], pa.array(names))
        chunks = ledger.filter(of_part).drop_columns(["file"]).cast(CHUNKS)
        trials, violations = (
            path_of(directory, each, places[number]) for each in ("trials", "violations")
        )
        result.append(StagedFiles(trials, violations, chunks))
    return tuple(result)


def merging(
    directory: str, parts: Sequence[Sequence[str]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``: merges parts and yields the names of the files.

    No other attempt has files of these names.
    """

    def merge_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                name = f"merged-{number}-{uuid4().hex[:12]}"
                merge_part(Path(directory), parts[number], name)
                yield pa.RecordBatch.from_pylist([{"part": number, "name": name}], schema=MERGED)

    return merge_rows


def groups_of(session: SparkSession, paths: Sequence[Path], name: str, slots: int) -> list[Group]:
    """A group for each signature in files of violations that all executors see."""
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_schema

    parts = min(len(paths), slots)
    session.sparkContext.setJobGroup(name, name, True)
    found = session.range(0, parts, 1, parts).mapInArrow(
        grouping([[str(path) for path in paths[part::parts]] for part in range(parts)]),
        from_arrow_schema(GROUPS),
    )
    merged = found.groupBy("signature").agg(
        functions.sum("count").alias("count"),
        functions.min(functions.struct(*WITNESS)).alias("first"),
    )
    lines = merged.select("signature", "count", "first.*").toArrow().to_pylist()
    return [Group(**line) for line in lines]


def grouping(
    parts: Sequence[Sequence[str]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``: the groups of the files of a part, in little memory."""

    def group_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield grouped(parts[part])

    return group_rows


def grouped(paths: Sequence[str]) -> pa.RecordBatch:
    summary = Summary()
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS["violations"]):
                add_violations(summary, pa.Table.from_batches([batch]).cast(VIOLATIONS))
    return pa.RecordBatch.from_pylist(
        [asdict(group) for group in summary.groups.values()], schema=GROUPS
    )

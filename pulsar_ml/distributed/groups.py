"""Executors merge the files of a wave and group its violations by signature.

Whatever the number of rows, the driver gets one row for each file and one for each signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsar_ml.campaign.store.merge import Group, Summary, add_violations
from pulsar_ml.campaign.store.schema import CHUNKS, VIOLATIONS
from pulsar_ml.campaign.store.staging import BATCH_ROWS, StagedFiles, in_parts, merge_part, path_of
from pulsar_ml.distributed.jobs import results_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITNESS = ("seed", "message", "replay", "suite", "invariant", "phase")  # the smallest in this order


def merged_parts(
    session: SparkSession, directory: Path, ledger: pa.Table, name: str
) -> tuple[StagedFiles, ...]:
    """Merges a wave's files on executors, a task for each part; ``ledger`` names valid files."""
    parts = in_parts(ledger)
    session.sparkContext.setJobGroup(name, name, True)
    places = results_of(session.sparkContext, len(parts), merging(str(directory), parts))
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
) -> Callable[[Iterable[int]], Iterator[str]]:
    """The function of tasks: merges parts and yields the names of the files.

    No other attempt has files of these names.
    """

    def merge(numbers: Iterable[int]) -> Iterator[str]:
        for number in numbers:
            name = f"merged-{number}-{uuid4().hex[:12]}"
            merge_part(Path(directory), parts[number], name)
            yield name

    return merge


def groups_of(session: SparkSession, paths: Sequence[Path], name: str, slots: int) -> list[Group]:
    """A group for each signature in files of violations that all executors see."""
    parts = min(len(paths), slots)
    session.sparkContext.setJobGroup(name, name, True)
    files = [[str(path) for path in paths[part::parts]] for part in range(parts)]
    found = session.sparkContext.parallelize(range(parts), parts).mapPartitions(grouping(files))
    merged = found.reduceByKey(merged_group, parts).collect()
    return [Group(**values) for _, values in merged]


def grouping(
    parts: Sequence[Sequence[str]],
) -> Callable[[Iterable[int]], Iterator[tuple[str, dict[str, Any]]]]:
    """The function of tasks: the groups of the files of a part by signature, as plain values."""

    def groups(numbers: Iterable[int]) -> Iterator[tuple[str, dict[str, Any]]]:
        for number in numbers:
            yield from grouped(parts[number]).items()

    return groups


def grouped(paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The groups of files, in little memory."""
    summary = Summary()
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS["violations"]):
                add_violations(summary, pa.Table.from_batches([batch]).cast(VIOLATIONS))
    return {signature: asdict(group) for signature, group in summary.groups.items()}


def merged_group(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The group of two parts: all violations, and the smallest of the two."""
    first = min(one, other, key=lambda group: [group[name] for name in WITNESS])
    return {**first, "count": one["count"] + other["count"]}

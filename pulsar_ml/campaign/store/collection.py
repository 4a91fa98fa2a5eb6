"""Collects many runs into one data set, partitioned by run and suite, for questions across runs.

    DIR/trials/run_id=ID/suite=NAME/part-0.parquet
    DIR/violations/run_id=ID/suite=NAME/part-0.parquet

The names of the directories hold these two columns, as Spark SQL, DuckDB and pandas read them; the
files do not. A run that is collected again replaces its earlier rows.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from pulsar_ml.campaign.store.read_run import SavedRun
from pulsar_ml.campaign.store.schema import TRIALS, VIOLATIONS
from pulsar_ml.errors import BadRecordError
from pulsar_ml.input_files import refused

NAME = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z_.-]{0,100}")
TABLES = (("violations", VIOLATIONS), ("trials", TRIALS))  # trials last, as in a run


def collect(
    run: SavedRun, into: Path, on_rows: Callable[[int], object] = lambda rows: None
) -> None:
    """Copy a run into the data set at ``into``, completely or not at all.

    ``on_rows`` gets the number of rows of each batch.

    Raises UsageError or OSError when it cannot be written, BadRecordError when the run is damaged.
    """
    run_id = run.facts["run_id"]
    if not NAME.fullmatch(run_id):
        raise BadRecordError(
            f"{run.directory}: the run id {run_id!r:.60} cannot be the name of a directory"
        )
    try:
        into.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=into, prefix=f".{run_id}."))
        try:
            for name, schema in TABLES:
                (scratch / name).mkdir()
                write(
                    run.trials() if name == "trials" else run.violations(),
                    schema,
                    scratch / name,
                    on_rows,
                )
            for name, _ in TABLES:
                target = into / name / f"run_id={run_id}"
                target.parent.mkdir(exist_ok=True)
                if target.exists():
                    target.rename(scratch / f"old-{name}")
                (scratch / name).rename(target)
        finally:
            shutil.rmtree(scratch)
    except OSError as error:
        raise refused(error, into, "write into") from None


def write(
    tables: Iterator[pa.Table], schema: pa.Schema, directory: Path, on_rows: Callable[[int], object]
) -> None:
    schema = schema.remove(schema.get_field_index("run_id"))

    def batches() -> Iterator[pa.RecordBatch]:
        for table in tables:
            on_rows(len(table))
            yield from (
                table.select(schema.names).replace_schema_metadata(schema.metadata).to_batches()
            )

    ds.write_dataset(
        batches(),
        directory,
        schema=schema,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([schema.field("suite")]), flavor="hive"),
        basename_template="part-{i}.parquet",
        file_options=ds.ParquetFileFormat().make_write_options(compression="zstd"),
        use_threads=False,
    )

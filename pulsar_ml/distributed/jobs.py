"""Jobs of Spark: a function of numbers that runs in tasks, a number in each.

They are jobs of an RDD. The first one of a DataFrame takes 1.5 seconds more in a new JVM, which
loads and compiles Spark's planner of queries, and there is nothing to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext

Result = TypeVar("Result")


def results_of(
    context: SparkContext, count: int, function: Callable[[Iterable[int]], Iterable[Result]]
) -> list[Result]:
    """Return what the function yields in ``count`` tasks, in the order of their numbers.

    Tasks get the numbers from 0 on. Raises what Spark raises when the job fails.
    """
    return context.parallelize(range(count), count).mapPartitions(function).collect()


def as_bytes(batch: pa.RecordBatch) -> bytes:
    """Return a batch as a stream of Arrow, with its schema."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def table_of(streams: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """Return the rows of such streams, in the types of a schema."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(stream).read_all().cast(schema) for stream in streams]
    return pa.concat_tables([schema.empty_table(), *tables])

"""Takes the chunks of an endless sweep from Structured Streaming: a micro-batch is some chunks.

The stream's checkpoint says which batch is next. After a kill it may be behind the tables, never
ahead of them: a batch is committed when all of its chunks are written. Chunks that are in the
tables already do not run again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from pulsar_ml.campaign.run.runner import POLL_SECONDS, RunnerError
from pulsar_ml.distributed.session import java_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT = "checkpoint"  # in a run's directory


class LeaveBatchError(Exception):
    """Ends the stream in the middle of a batch, which stays uncommitted."""


class ChunkStream:
    """Ids of chunks, batch by batch; for use in one thread, the stream's own ones stay behind it.

    ``next_chunk`` is where a stream without a checkpoint begins.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: Path,
        *,
        name: str,
        next_chunk: int,
        rows: int,
        stopped: Callable[[], bool],
    ) -> None:
        self._session = session
        self._checkpoint, self._first = checkpoint_in(directory, next_chunk)
        self._name = name
        self._rows = rows
        self._stopped = stopped
        self._offered: SimpleQueue[list[int]] = SimpleQueue()
        self._kept: SimpleQueue[bool] = SimpleQueue()
        self._query: StreamingQuery | None = None

    def batches(self) -> Iterator[list[int]]:
        """Asking for the next batch says that all chunks of the one before are in the store.

        Raises ``RunnerError`` when the stream ends by itself.
        """
        source = self._session.readStream.format("rate-micro-batch")
        frame = source.option("rowsPerBatch", self._rows).option("numPartitions", 1).load()
        writer = frame.writeStream.queryName(self._name).foreachBatch(self._offer)
        self._query = query = writer.option(
            "checkpointLocation", self._checkpoint.resolve().as_uri()
        ).start()
        while not self._stopped():
            try:
                batch = self._offered.get(timeout=POLL_SECONDS)
            except Empty:
                if query.isActive:
                    continue
                reason = java_message(query.exception() or RuntimeError("without a message"))
                raise RunnerError(
                    f"the stream of chunks ended: {reason}; if {self._checkpoint} is damaged, "
                    "remove it: finished chunks are in the tables"
                ) from None
            yield batch
            self._kept.put(True)

    def close(self) -> None:
        """Ends the stream; a batch that is not in the store is not committed."""
        if self._query is None:
            return
        # The end is ours, and py4j would tell it with a stack.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        self._kept.put(False)
        with suppress(Exception):  # the JVM may be gone
            self._query.stop()

    def _offer(self, frame: DataFrame, batch: int) -> None:
        """Runs in a thread of the stream; its return commits the batch."""
        self._offered.put(
            sorted(self._first + row.value for row in frame.select("value").collect())
        )
        if not self._kept.get():
            raise LeaveBatchError("the sweep was stopped")


def checkpoint_in(directory: Path, next_chunk: int) -> tuple[Path, int]:
    """The stream's own directory, whose name says which chunk its first row stands for."""
    parent = directory / CHECKPOINT
    parent.mkdir(exist_ok=True)
    for path in parent.glob("from-*"):
        if (first := path.name.removeprefix("from-")).isdecimal():
            return path, int(first)
    return parent / f"from-{next_chunk}", next_chunk

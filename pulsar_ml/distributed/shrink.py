"""Makes failures smaller on Spark, one job with one task for each failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pulsar_ml.campaign.run.runner import RunnerError
from pulsar_ml.campaign.shrink.shrinking import Task
from pulsar_ml.campaign.shrink.shrunk import REFUSED, Shrunk
from pulsar_ml.distributed.session import java_message
from pulsar_ml.distributed.tasks import MARK, ExecutorError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ANSWER = "result string"


class SparkShrinker:
    """Runs as many jobs of one task as there are slots; no job waits for a slower one."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._stopped = False

    @property
    def slots(self) -> int:
        return max(1, int(self._session.sparkContext.defaultParallelism))

    def shrink(self, task: Task) -> Shrunk:
        """Raises RunnerError when no executor could try the task."""
        if self._stopped:
            return Shrunk(REFUSED, "stopped")
        frame = self._session.range(0, 1, 1, 1).mapInArrow(task_for(task.to_json()), ANSWER)
        try:
            self._session.sparkContext.setJobDescription(f"shrinks a failure of {task.suite}")
            (row,) = frame.collect()
        except Exception as error:
            text = str(error)
            if (start := text.find(MARK)) >= 0:
                raise RunnerError(text[start + len(MARK) :].splitlines()[0]) from None
            raise RunnerError(f"the Spark job failed: {java_message(error)}") from None
        return Shrunk.from_json(row.result)

    def stop(self) -> None:
        self._stopped = True
        self._session.sparkContext.cancelAllJobs()


def task_for(text: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``: runs the task and yields its result as JSON."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            from pulsar_ml.campaign.shrink.shrinking import Task, apart
        except ImportError as error:
            raise ExecutorError(
                f"an executor cannot import pulsar_ml ({error}); "
                "install the wheel of this build there"
            ) from error
        for batch in batches:
            found = [apart(Task.from_json(text)).to_json() for _ in range(len(batch))]
            yield pa.RecordBatch.from_pydict({"result": found})

    return run

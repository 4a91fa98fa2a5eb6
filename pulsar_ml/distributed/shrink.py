"""Makes failures smaller on Spark, one job with one task for each failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from pulsar_ml.campaign.run.runner import RunnerError
from pulsar_ml.campaign.shrink.shrinking import Task
from pulsar_ml.campaign.shrink.shrunk import REFUSED, Shrunk
from pulsar_ml.distributed.jobs import results_of
from pulsar_ml.distributed.session import java_message
from pulsar_ml.distributed.tasks import MARK, ExecutorError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        context = self._session.sparkContext
        try:
            context.setJobDescription(f"shrinks a failure of {task.suite}")
            (found,) = results_of(context, 1, task_for(task.to_json()))
        except Exception as error:
            text = str(error)
            if (start := text.find(MARK)) >= 0:
                raise RunnerError(text[start + len(MARK) :].splitlines()[0]) from None
            raise RunnerError(f"the Spark job failed: {java_message(error)}") from None
        return Shrunk.from_json(found)

    def stop(self) -> None:
        self._stopped = True
        self._session.sparkContext.cancelAllJobs()


def task_for(text: str) -> Callable[[Iterable[int]], Iterator[str]]:
    """The function of the job's task: runs the task of shrinking and yields its result as JSON."""

    def run(numbers: Iterable[int]) -> Iterator[str]:
        try:
            from pulsar_ml.campaign.shrink.shrinking import Task, apart
        except ImportError as error:
            raise ExecutorError(
                f"an executor cannot import pulsar_ml ({error}); "
                "install the wheel of this build there"
            ) from error
        for _ in numbers:
            yield apart(Task.from_json(text)).to_json()

    return run

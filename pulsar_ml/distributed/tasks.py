"""The work of an executor: turns the numbers of tasks into rows of trials.

A stranger's suites travel to the executors as a zip; pulsar_ml with its compiled code must be
installed there. Only the standard library is imported at the top, so that an executor which lacks
something says so in one sentence and not in a stack of imports.
"""

from __future__ import annotations

import gc
import itertools
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pulsar_ml.distributed.jobs import as_bytes
from pulsar_ml.distributed.logs import executor_log

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Accumulator

    from pulsar_ml.campaign.plan.plan import Chunk
    from pulsar_ml.campaign.trial.chunk import Job
    from pulsar_ml.campaign.trial.isolation import Isolation

    Counters = Accumulator[dict[str, tuple[int, ...]]]

Chunked = tuple[Any, ...]  # the fields of a chunk

BUNCH_ROWS = 1 << 14
forks = False  # the daemon forked this process with what supervisors of trials import
MARK = "ExecutorError: "  # how the driver finds the sentence in what Spark reports


class ExecutorError(RuntimeError):
    """This executor cannot run trials of the campaign; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Work:
    """The plain data of every task of a wave; no class of pulsar_ml, which may be missing."""

    run_id: str
    build_id: str
    options: dict[str, Any]
    limits: dict[str, Any]
    registry: str  # the module with SUITES
    chunks: tuple[tuple[Any, ...], ...]  # the fields of each chunk
    tasks: tuple[tuple[int, ...], ...]  # indices of chunks, each in one task
    staging: tuple[str, str] | None = None  # directory and token; None: rows go to the driver
    maker: str = ""  # MODULE:FUNCTION that makes the rows of a chunk without running trials
    log: str = ""  # the driver's, when tasks run beside it
    # The moment of time.time() from which no chunk begins, and no trial makes further runs.
    ends: float | None = None
    whole: bool = False  # each chunk begins, also when the time is over


def work_for(
    job: Job,
    chunks: Sequence[Chunk],
    registry: str,
    *,
    tasks: Sequence[Sequence[Chunk]] | None = None,
    staging: tuple[str, str] | None = None,
    maker: str = "",
    log: str = "",
    ends: float | None = None,
    whole: bool = False,
) -> Work:
    """The work of one wave; number ``i`` stands for ``tasks[i]``, or ``chunks[i]``."""
    plain = tuple(astuple(chunk) for chunk in chunks)
    places = {chunk: index for index, chunk in enumerate(chunks)}
    numbers = tuple(
        tuple(places[chunk] for chunk in task) for task in tasks or [[one] for one in chunks]
    )
    options, limits = asdict(job.options), asdict(job.limits)
    return Work(
        job.run_id, job.build_id, options, limits, registry, plain, numbers, staging, maker, log,
        ends, whole,
    )  # fmt: skip


def task_for(
    work: Work, counters: Counters | None = None
) -> Callable[[Iterable[int]], Iterator[bytes]]:
    """The function of a wave's tasks: trials of each chunk, or rows of the ledger, as bytes.

    ``counters`` get the counts of each chunk.
    """

    def run(numbers: Iterable[int]) -> Iterator[bytes]:
        make = rows_of if work.staging is None else ledger_rows
        return map(as_bytes, make(work, numbers, counters))

    return run


def ledger_rows(
    work: Work, numbers: Iterable[int], counters: Counters | None = None
) -> Iterator[pa.RecordBatch]:
    """Runs the tasks of these numbers and leaves their rows in the wave's directory.

    Yields the ledger of each task, with the name of its files, when they are complete; no other
    attempt has files of that name.
    """
    import pyarrow as pa

    assert work.staging is not None
    directory, token = Path(work.staging[0]), work.staging[1]
    run = maker_of(work, counters)  # first: it reports missing packages
    from pulsar_ml.campaign.store.ledger import ledger_of
    from pulsar_ml.campaign.store.staging import StagingError, check_staging, write_part

    try:
        check_staging(directory, token)
    except StagingError as error:
        raise ExecutorError(
            f"{here()} {error}; --rows executors needs a results directory that every executor has "
            "at this path, --rows driver does not"
        ) from error
    no_garbage()
    for number in numbers:
        name = f"{number:06}-{uuid4().hex[:12]}"
        result = (pa.Table.from_batches([rows]) for rows in run(work.tasks[number]))
        parts = [
            ledger_of(pa.concat_tables(some))
            for some in bunches(write_part(directory, name, result))
        ]
        if not parts:
            continue  # the time was over
        ledger = pa.concat_tables(parts)
        named = ledger.append_column("file", pa.repeat(pa.scalar(name), len(ledger)))
        yield from named.combine_chunks().to_batches()


def bunches(tables: Iterable[pa.Table]) -> Iterator[list[pa.Table]]:
    """Groups of neighbouring tables with some thousand rows each, which are summed together."""
    records: list[pa.Table] = []
    for table in tables:
        records.append(table)
        if sum(map(len, records)) >= BUNCH_ROWS:
            yield records
            records = []
    if records:
        yield records


def rows_of(
    work: Work, numbers: Iterable[int], counters: Counters | None = None
) -> Iterator[pa.RecordBatch]:
    """Runs the tasks of these numbers. Raises ``ExecutorError`` before the first trial."""
    run = maker_of(work, counters)
    no_garbage()
    for number in numbers:
        yield from run(work.tasks[number])


def maker_of(
    work: Work, counters: Counters | None
) -> Callable[[Sequence[int]], Iterator[pa.RecordBatch]]:
    """A function from indices of chunks to their rows, which name the executor."""
    run = runner_for(work)
    from pulsar_ml.campaign.without_pandas import arrow_without_pandas

    arrow_without_pandas()
    place = executor_log(os.environ, Path.cwd(), work.log)
    # A task that is repeated, or run twice at once, is made whole: its rows may be the ones kept.
    until = None if work.whole or earlier_attempts() else work.ends

    def result(indices: Sequence[int]) -> Iterator[pa.RecordBatch]:
        chunks = begun_before(until, [work.chunks[index] for index in indices])
        for found in map(run, chunks):
            rows = placed(found, *place)
            if counters is not None:
                counters.add(counts_of(rows))
            yield rows

    return result


def begun_before(until: float | None, chunks: Sequence[Chunked]) -> Iterator[Chunked]:
    """Chunks, one when it can begin, as long as this machine's clock is not over."""
    return itertools.takewhile(lambda _: until is None or time.time() < until, chunks)


def counts_of(rows: pa.RecordBatch) -> dict[str, tuple[int, ...]]:
    """The counts of a chunk by suite: trials, violations, executions, classes."""
    import pyarrow.compute as pc

    sums = [pc.sum(rows.column(name)).as_py() for name in ("executions", "classes")]
    found = len(rows.column("violations").flatten())
    return {rows.column("suite")[0].as_py(): (rows.num_rows, found, *sums)}


def placed(rows: pa.RecordBatch, executor: str, log: str) -> pa.RecordBatch:
    """The rows with the executor in each violation; its log gets a line for each signature."""
    import pyarrow as pa

    column = rows.schema.get_field_index("violations")
    if not len(rows.column(column).flatten()):
        return rows
    found = rows.column(column).to_pylist()
    printed = set()
    for seed, violations in zip(rows.column("seed").to_pylist(), found, strict=True):
        for violation in violations:
            violation.update(executor=executor, log=log)
            if violation["signature"] not in printed:
                printed.add(violation["signature"])
                suite = rows.column("suite")[0].as_py()
                print(
                    f"pulsar_ml: violation {violation['signature']} of {violation['invariant']}: "
                    f"{suite} seed {seed}",
                    file=sys.stderr,
                    flush=True,
                )
    field = rows.schema.field(column)
    return rows.set_column(column, field, pa.array(found, field.type))


def no_garbage() -> None:
    """Freezes imported objects, in which Spark's worker would look for garbage after each task."""
    gc.collect()
    gc.freeze()


def here() -> str:
    return f"the executor on {socket.gethostname()} ({sys.executable})"


def earlier_attempts() -> int:
    """The number of Spark's earlier attempts at this task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.attemptNumber())


def runner_for(work: Work) -> Callable[[tuple[Any, ...]], pa.RecordBatch]:
    """A function that runs a chunk of ``work`` here, from the chunk's fields.

    Raises ``ExecutorError`` when this executor cannot.
    """
    where = here()
    try:
        from pulsar_ml.campaign.plan.plan import Chunk
        from pulsar_ml.campaign.trial.chunk import BuildMismatchError, Job
        from pulsar_ml.campaign.trial.engines import check_options, load_module
        from pulsar_ml.campaign.trial.trial import TrialOptions, find_subject, load_native
        from pulsar_ml.errors import UsageError
        from pulsar_ml.harness.search.child import Limits
    except ImportError as error:
        raise ExecutorError(
            f"{where} cannot import pulsar_ml ({error}); install the wheel of this build there"
        ) from error
    if work.maker:
        module_name, _, function = work.maker.partition(":")
        make = getattr(import_module(module_name), function)
        plain = Job(work.run_id, work.build_id, TrialOptions(**work.options), Limits(**work.limits))
        return lambda fields: make(Chunk(*fields), plain)
    try:
        suites = load_native(work.registry).SUITES
    except ImportError as error:
        raise ExecutorError(
            f"{where} cannot import the shipped suites {work.registry} ({error})"
        ) from error
    options = TrialOptions(**work.options)
    try:
        module = load_module(options)
    except ImportError as error:
        raise ExecutorError(
            f"{where} has no native module {options.module} ({error}); "
            "install the wheel of this build there"
        ) from error
    build_id = getattr(module, "BUILD_ID", work.build_id)  # without one, the first trial says it
    if build_id != work.build_id:
        raise ExecutorError(
            f"{where} has build {build_id} of {options.module}, but this sweep is about build "
            f"{work.build_id}; install the same wheel everywhere"
        )
    try:
        for name in dict.fromkeys(suite for _, suite, *_ in work.chunks):
            check_options(find_subject(module, suites[name]), options)
    except UsageError as error:
        raise ExecutorError(f"{where} cannot run this sweep: {error}") from error
    job = Job(work.run_id, work.build_id, options, Limits(**work.limits))
    isolation().begin()  # before Arrow, whose threads a fork would lose
    attempt = earlier_attempts()
    ends = None if work.ends is None else time.monotonic() + work.ends - time.time()

    def run(fields: tuple[Any, ...]) -> pa.RecordBatch:
        chunk = Chunk(*fields)
        try:
            return isolation().run(suites[chunk.suite], chunk, job, attempt=attempt, ends=ends)
        except BuildMismatchError as error:
            raise ExecutorError(str(error)) from error

    return run


@cache
def isolation() -> Isolation:
    """The isolation of this Python worker, which Spark keeps for many tasks."""
    from pulsar_ml.campaign.trial.isolation import Isolation

    return Isolation(echo=True, forks=forks)

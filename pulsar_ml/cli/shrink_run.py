"""Makes the failures of a run smaller, many side by side: ``python -m spark.shrink RUN``."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from pulsar_ml.campaign.run.runner import RunnerError
from pulsar_ml.campaign.shrink.shrink_run import (
    Shrinker,
    Processes,
    Witness,
    shrink_all,
    task_of,
    witnesses,
)
from pulsar_ml.campaign.shrink.shrinking import Task
from pulsar_ml.campaign.shrink.shrunk import (
    FOUND,
    LOST,
    REFUSED,
    SMALLER,
    Shrunk,
    Size,
    record_path,
)
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.store.summary import counted, short_path
from pulsar_ml.cli.sweep import fail
from pulsar_ml.distributed.session import (
    check_environment,
    check_master,
    java_message,
    open_session,
    packed,
    repeating,
    settings,
)
from pulsar_ml.distributed.shipping import link_installed, pack
from pulsar_ml.distributed.tasks import MARK, ExecutorError
from pulsar_ml.errors import BadRecordError, PulsarMlError, UsageError
from pulsar_ml.sweep.command_lines import REGISTRY, here, stress_command
from pulsar_ml.sweep.options import setting
from pulsar_ml.sweep.run import CLEAN, FAILED, INTERRUPTED, NOTHING, USAGE
from pulsar_ml.sweep.stop_request import StopRequest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SHOWN = 50  # lines of the table; the files hold all
ANSWER = "result string"

EPILOG = """\b
Examples:
  python -m spark.shrink runs/ID                     all failures of a sweep, on Spark inside this machine
  python -m spark.shrink runs/ID --runner pool       the same without Java
  python -m spark.shrink runs/ID --executions 20000000 --signature 0123456789ab

\b
Exit codes: 0 all were tried, 2 usage error, 3 the run has no failure, 4 failed (a process was lost,
another build, ...), 130 interrupted. What was done by then is kept, and not done again.
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--executions", type=click.IntRange(1), default=1_000_000, show_default=True, help="Of each."
)
@click.option(
    "--signature", "only", multiple=True, metavar="ID", help="Signature, repeatable. Default: all."
)
@click.option(
    "--module", metavar="PATH", help="Checked module to use. Default: the one that failed."
)
@click.option(
    "--suites", "registry", metavar="MODULE", help="Module with SUITES. Default: the run's."
)
@click.option("--runner", type=click.Choice(["spark", "pool"]), default="spark", show_default=True)
@click.option(
    "--master", metavar="URL", default="local[*]", show_default=True, help="Any that Spark takes."
)
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Setting for Spark, repeatable.")
@click.option(
    "--environment", metavar="ARCHIVE", help="What executors run in, made by python -m spark.pack."
)
@click.option(
    "--workers", type=click.IntRange(1), help="Processes of the pool. Default: a core each."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(
    run: Path,
    executions: int,
    only: tuple[str, ...],
    module: str | None,
    registry: str | None,
    runner: str,
    master: str,
    conf: tuple[str, ...],
    environment: str | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Make the failure of each signature of RUN smaller, with more executions than a trial spends on that.

    For what real threads found, the engine looks for the same outcome. Each result is made again before it
    counts; it is kept in RUN/shrunk, the records stay as they are, and reports show the smaller one.
    """
    try:
        if runner == "spark":
            check_environment()
            check_master(master)
        saved = open_run(run)
        found = chosen(witnesses(saved), only, run)
        registry = registry or saved.facts["runner"].get("registry") or REGISTRY
        module = (
            os.path.abspath(module)
            if module and ("/" in module or module.endswith(".so"))
            else module
        )

        def task(witness: Witness) -> Task:
            return task_of(witness, registry=registry, module=module or "", executions=executions)

        store = RunStore.reopen(run)
        with ExitStack() as stack:
            stack.callback(store.close)
            store.tidy()
            wanted = [
                one for one in found if not (one.state and one.state.covers(one.record, executions))
            ]
            states = {one.signature: one for one in found}
            whole = True
            if wanted:
                place: Shrinker
                if runner == "pool":
                    place = Processes(workers or os.cpu_count() or 1)
                else:
                    place = spark_place(
                        stack, master, dict(map(setting, conf)), registry, environment
                    )
                with StopRequest() as stop:
                    stop.install()
                    whole = tried(store, wanted, place, task, states, stop)
        show(run, list(states.values()), len(found) - len(wanted), registry, as_json=as_json)
        code = exit_code(list(states.values()), whole)
    except (UsageError, BadRecordError) as error:
        code = fail(f"Error: {error}", USAGE)
    except (PulsarMlError, OSError) as error:
        code = fail(f"Failed: {error}", FAILED)
    except KeyboardInterrupt:
        code = fail("Interrupted", INTERRUPTED)
    sys.exit(code)


def chosen(found: Sequence[Witness], only: Sequence[str], run: Path) -> list[Witness]:
    """Those with the signatures asked for, or all. UsageError for one that the run does not have."""
    known = {one.signature: one for one in found}
    for signature in only:
        if signature not in known:
            raise UsageError(f"{run} has no record with the signature {signature!r:.80}")
    return [known[signature] for signature in dict.fromkeys(only)] if only else list(found)


def tried(
    store: RunStore,
    wanted: Sequence[Witness],
    place: Shrinker,
    task: Callable[[Witness], Task],
    states: dict[str, Witness],
    stop: StopRequest,
) -> bool:
    """Tries what is wanted, with a bar; False when it was stopped."""
    counts: Counter[str] = Counter()
    console = Console(stderr=True)
    words = counted(len(wanted), "failure")
    console.print(f"{words}, {place.slots} at once", highlight=False)
    bar = Progress(console=console, transient=True) if console.is_terminal else None
    with bar or nullcontext():
        line = bar.add_task(words, total=len(wanted)) if bar else None

        def on_done(witness: Witness) -> None:
            assert witness.state is not None
            states[witness.signature] = witness
            counts[witness.state.shrunk.outcome] += 1
            told = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
            if bar and line is not None:
                bar.update(line, completed=sum(counts.values()), description=told)
            else:
                console.print(f"{sum(counts.values()):,} of {words}: {told}", highlight=False)

        return shrink_all(store, wanted, place, task, stopped=stop.asked, on_done=on_done)


class SparkPlace:
    """A job of one task for each failure: Spark has as many of them as there are slots, and no wave waits for
    its slowest."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._stopped = False

    @property
    def slots(self) -> int:
        return max(1, int(self._session.sparkContext.defaultParallelism))

    def shrink(self, task: Task) -> Shrunk:
        """Raises RunnerError when no executor could try it."""
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


def spark_place(
    stack: ExitStack, master: str, conf: dict[str, str], registry: str, environment: str | None
) -> SparkPlace:
    scratch = Path(tempfile.mkdtemp(prefix="pulsar_ml-spark-"))
    stack.callback(shutil.rmtree, scratch, ignore_errors=True)
    site = link_installed(scratch / "site") if environment is None else None
    defaults = settings(master, cpus=1, scratch=scratch, site=site)
    if environment is not None:
        defaults |= packed(Path(environment), master)
    given = {"spark.master": repeating(master), **conf}
    session = open_session(defaults, given, scratch=scratch, log=scratch / "spark.log")
    stack.callback(session.stop)
    session.sparkContext.addPyFile(str(pack(scratch / "pulsar_ml_apps.zip", registry)))
    return SparkPlace(session)


def task_for(text: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``: the task in, what came of it out."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            from pulsar_ml.campaign.shrink.shrinking import Task, apart
        except ImportError as error:
            raise ExecutorError(
                f"an executor cannot import pulsar_ml ({error}); install the wheel of this build there"
            ) from error
        for batch in batches:
            found = [apart(Task.from_json(text)).to_json() for _ in range(len(batch))]
            yield pa.RecordBatch.from_pydict({"result": found})

    return run


def show(
    run: Path, found: Sequence[Witness], earlier: int, registry: str, *, as_json: bool
) -> None:
    """A line for each failure, before and after, and the commands that make the smaller ones again."""
    known = [(one, one.state.shrunk) for one in found if one.state is not None]
    if as_json:
        click.echo(json.dumps({"failures": [line_data(run, *pair) for pair in known]}, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title="Failures before and after", title_justify="left")
    for name in ("Signature", "Suite", "Invariant"):
        table.add_column(name, overflow="fold")
    for name in ("Threads", "Operations", "Decisions", "Steps"):
        table.add_column(name, justify="right")
    table.add_column("Outcome", overflow="fold")
    for one, shrunk in known[:SHOWN]:
        outcome = f"{shrunk.outcome}: {shrunk.message}" if shrunk.message else shrunk.outcome
        table.add_row(
            one.signature,
            Text(one.suite),
            Text(one.invariant),
            *(change(shrunk, name) for name in ("threads", "operations", "decisions", "steps")),
            Text(outcome),
        )
    if known:
        console.print(table)
    stress = stress_command(registry)
    for one, shrunk in known[:SHOWN]:
        if shrunk.record:
            command = stress(f"replay {here(record_path(run, one.signature))}")
            console.print(f"  {command}", soft_wrap=True, highlight=False, markup=False)
    if len(known) > SHOWN:
        console.print(f"and {len(known) - SHOWN:,} more in {short_path(run)}/shrunk")
    smaller = sum(bool(shrunk.record) for _, shrunk in known)
    told = f"{counted(len(found), 'failure')}: {smaller:,} smaller than recorded"
    told += f", {earlier:,} tried before" if earlier else ""
    console.print(
        f"{told}; in {short_path(run)}/shrunk" if known else told, soft_wrap=True, highlight=False
    )


def change(shrunk: Shrunk, name: str) -> str:
    """A number before and after, or one that did not change."""
    before, after = (getattr(size, name, 0) for size in (shrunk.before, shrunk.after))
    if shrunk.outcome == FOUND and not before:
        return f"{after:,}"  # of real threads it is not known
    if shrunk.outcome in (SMALLER, FOUND) and before != after:
        return f"{before:,} → {after:,}"
    return f"{before:,}" if shrunk.before else "-"


def line_data(run: Path, witness: Witness, shrunk: Shrunk) -> dict[str, Any]:
    def data(size: Size | None) -> dict[str, int] | None:
        return None if size is None else asdict(size)

    return {
        "signature": witness.signature,
        "suite": witness.suite,
        "invariant": witness.invariant,
        "outcome": shrunk.outcome,
        "message": shrunk.message,
        "before": data(shrunk.before),
        "after": data(shrunk.after),
        "record": str(record_path(run, witness.signature)) if shrunk.record else None,
    }


def exit_code(found: Sequence[Witness], whole: bool) -> int:
    if not whole:
        return INTERRUPTED
    if not found:
        return NOTHING
    bad = any(one.state is None or one.state.shrunk.outcome in (LOST, REFUSED) for one in found)
    return FAILED if bad else CLEAN

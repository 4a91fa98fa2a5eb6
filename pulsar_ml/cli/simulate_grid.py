"""The best settings for a workload: ``python -m spark.simulate`` plays a grid of them, a task each."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from pulsar_ml.config import BY_KEY, Reading, read_broker_conf
from pulsar_ml.distributed.session import check_environment, check_master, open_session, settings
from pulsar_ml.distributed.shipping import link_installed
from pulsar_ml.errors import ConfigError, PulsarMlError, UsageError
from pulsar_ml.simulate.grid import OBJECTIVES, Point, Scored, parse_axis, points, scored
from pulsar_ml.simulate.variant import POLICY
from pulsar_ml.simulate.workload import parse_workload, workload_text
from pulsar_ml.sweep.run import CLEAN, FAILED, INTERRUPTED, USAGE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

MIB = 1 << 20
GROUP = "pulsar_ml simulate"
DEFAULT_GRID = (
    f"{POLICY}=central_queue,released_queue,lru,s3_fifo",
    "managedLedgerCacheEvictionTimeThresholdMillis=500,1000,5000",
    "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes=0,5,20",
)
Played = list[tuple[Point, Mapping[str, Any]]]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("workload")
@click.option(
    "--conf", "broker_conf", type=click.Path(path_type=Path), help="A broker.conf to start from."
)
@click.option(
    "--grid",
    "axes",
    multiple=True,
    metavar="KEY=V,V",
    help="A setting and its values; may be repeated.",
)
@click.option(
    "--seeds", default=3, show_default=True, type=click.IntRange(1), help="Seeds for each point."
)
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(0))
@click.option(
    "--objective", type=click.Choice(list(OBJECTIVES)), default="storage_entries", show_default=True
)
@click.option(
    "--master", default="local[*]", show_default=True, metavar="URL", help="Spark master."
)
@click.option("--top", default=10, show_default=True, type=click.IntRange(1), help="Rows to print.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every point.")
def main(
    workload: str,
    broker_conf: Path | None,
    axes: tuple[str, ...],
    seeds: int,
    first_seed: int,
    objective: str,
    master: str,
    top: int,
    as_json: bool,
) -> None:
    """Simulate WORKLOAD (built in, or a TOML file) for every combination of settings; print the best.

    The settings of --conf are under those of the grid; what the workload sets itself is under both. The
    smallest objective wins, and of equal ones the least memory. Without --grid: the policies with three
    times to live and three budgets of extensions.

    \b
    Examples:
      python -m spark.simulate fan_out
      python -m spark.simulate my.toml --conf broker.conf --grid managedLedgerCacheSizeMB=64,128,256

    \b
    Exit codes: 0 done, 2 usage error, 4 failed, 130 interrupted; what was played by then is printed.
    """
    played: Played = []
    code = CLEAN
    try:
        text = workload_text(workload)
        parse_workload(text, workload)
        base = settings_of(read_broker_conf(broker_conf)) if broker_conf else {}
        grid = dict(parse_axis(axis) for axis in axes or DEFAULT_GRID)
        wanted = points(workload, text, grid, base, range(first_seed, first_seed + seeds))
        check_master(master)
        check_environment()
        with ExitStack() as stack:
            session = opened(stack, master)
            with Progress(console=Console(stderr=True), transient=True) as progress:
                task = progress.add_task(
                    f"{len(wanted):,} simulations of {workload}", total=len(wanted)
                )
                play(session, wanted, played, lambda: progress.update(task, completed=len(played)))
    except (UsageError, ConfigError) as error:
        click.echo(f"Error: {error}", err=True)
        code = USAGE
    except (PulsarMlError, OSError, RuntimeError) as error:
        click.echo(f"Failed: {error}", err=True)
        code = FAILED
    except KeyboardInterrupt:
        click.echo(f"Interrupted after {len(played):,} simulations", err=True)
        code = INTERRUPTED
    if played:
        show(scored(played, objective), objective, workload, top, as_json=as_json)
    sys.exit(code)


def settings_of(reading: Reading) -> dict[str, Any]:
    """What a file sets, without the defaults."""
    return {
        key: getattr(reading.config, BY_KEY[key].name)
        for key, origin in reading.origins.items()
        if origin != "default"
    }


def opened(stack: ExitStack, master: str) -> SparkSession:
    scratch = Path(tempfile.mkdtemp(prefix="pulsar_ml-spark-"))
    stack.callback(shutil.rmtree, scratch, ignore_errors=True)
    defaults = settings(master, cpus=1, scratch=scratch, site=link_installed(scratch / "site"))
    session = open_session(
        defaults, {"spark.master": master}, scratch=scratch, log=scratch / "spark.log"
    )
    stack.callback(session.stop)
    return session


def play(
    session: SparkSession, wanted: Sequence[Point], played: Played, show: Callable[[], None]
) -> None:
    """Appends each point with its result to ``played``, a wave of tasks at a time."""
    context = session.sparkContext
    wave = 4 * context.defaultParallelism
    context.setJobGroup(GROUP, GROUP, interruptOnCancel=True)
    for start in range(0, len(wanted), wave):
        part = wanted[start : start + wave]
        plain = [(p.workload, p.text, p.seed, dict(p.settings)) for p in part]
        rows = session.range(0, len(part), 1, len(part)).mapInArrow(
            task_for(plain), "point long, result string"
        )
        try:
            found = {row.point: json.loads(row.result) for row in rows.collect()}
        except KeyboardInterrupt:
            context.cancelJobGroup(GROUP)
            raise
        for index, point in enumerate(part):
            if "error" in found[index]:
                raise UsageError(found[index]["error"])
            played.append((point, found[index]))
        show()


def task_for(
    plain: list[tuple[str, str, int, dict[str, Any]]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``; it needs an installed pulsar_ml and nothing of this package."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from pulsar_ml.errors import PulsarMlError
        from pulsar_ml.simulate.grid import Point, run_point

        for batch in batches:
            indices = batch.column(0).to_pylist()
            results = []
            for index in indices:
                try:
                    result = run_point(Point(*plain[index])).to_json()
                    del result["timeline"]
                except PulsarMlError as error:
                    result = {"error": str(error)}
                results.append(json.dumps(result))
            yield pa.RecordBatch.from_pydict(
                {"point": pa.array(indices, pa.int64()), "result": results}
            )

    return run


def show(
    found: Sequence[Scored], objective: str, workload: str, top: int, *, as_json: bool
) -> None:
    if as_json:
        rows = [{name: getattr(each, name) for name in Scored.__slots__} for each in found]
        click.echo(
            json.dumps({"workload": workload, "objective": objective, "points": rows}, indent=2)
        )
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    varied = [
        name for name in found[0].settings if len({str(each.settings[name]) for each in found}) > 1
    ]
    made = Table(
        title=f"{workload}: {OBJECTIVES[objective]}, the least first ({found[0].seeds} seeds each)"
    )
    for name in varied:
        made.add_column(name, overflow="fold")
    for name in (objective, "hit rate", "MiB mean", "MiB most", "eviction steps", "ties"):
        made.add_column(name, justify="right")
    for each in found[:top]:
        made.add_row(
            *(str(each.settings[name]) for name in varied),
            f"{each.objective:,.4g}" if objective == "miss_rate" else f"{each.objective:,.0f}",
            f"{each.hit_rate:.2%}",
            f"{each.mean_pinned_bytes / MIB:,.1f}",
            f"{each.max_pinned_bytes / MIB:,.1f}",
            f"{each.eviction_steps:,.0f}",
            f"{len(each.ties):,}",
        )
    console.print(made)
    console.print("The best, as lines of broker.conf:")
    for name, value in found[0].settings.items():
        console.print(f"{name}={value}", soft_wrap=True, markup=False)

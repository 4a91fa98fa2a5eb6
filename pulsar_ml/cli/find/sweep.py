"""``pulsar-ml sweep``: many seeds side by side, on this machine or on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pulsar_ml.campaign.plan.rounds import FLOOR
from pulsar_ml.campaign.run.resume import read_facts
from pulsar_ml.campaign.trial.chunk import TRIAL_LIMITS
from pulsar_ml.campaign.trial.record import MOST_RUNS
from pulsar_ml.campaign.trial.trial import CONTROLLED, THREADS
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.errors import UsageError
from pulsar_ml.exit_codes import SEARCH
from pulsar_ml.sweep.display import AUTO, KINDS
from pulsar_ml.sweep.options import (
    DRIVER,
    EXECUTORS,
    NOT_KEPT,
    PART_EXECUTIONS,
    RUNNERS,
    SEEDS,
    SPARK,
    SweepOptions,
)

MOST_TEXT = 1_000  # characters of a stored option
MOST_NUMBER = 1e15
CHUNKS = "Chunks and waves"
FOREVER = "Endless sweeps"


def defaults_of_run(
    context: click.Context, parameter: click.Parameter, run: Path | None
) -> Path | None:
    """Makes the options of the resumed run the defaults."""
    if run is None:
        return None
    command = read_facts(run).get("command", {})
    if not isinstance(command, dict):
        raise UsageError(f"{run / 'run.json'} is damaged: its command is {command!r:.60}")
    command = {name: value for name, value in command.items() if name not in NOT_KEPT}
    for known in context.command.params:
        if known.name in command and not fits(known, command[known.name], context):
            value = f"{known.name} of its command is {command[known.name]!r:.60}"
            raise UsageError(f"{run / 'run.json'} is damaged: the {value}")
    context.default_map = command
    return run


def fits(known: click.Parameter, value: object, context: click.Context) -> bool:
    """True for a stored value that the command line could have given to an option."""
    if known.multiple:
        return isinstance(value, list) and all(
            isinstance(one, str) and len(one) <= MOST_TEXT for one in value
        )
    if value is None:
        return not isinstance(known.get_default(context), str | int | float)
    if isinstance(known.type, click.types.BoolParamType):
        return isinstance(value, bool)
    if isinstance(known.type, click.types.IntParamType):
        return type(value) is int
    if isinstance(known.type, click.types.FloatParamType):
        return isinstance(value, int | float) and value is not True and abs(value) < MOST_NUMBER
    return isinstance(value, str) and len(value) <= MOST_TEXT


@new_command(
    "sweep",
    examples=(
        "sweep",
        "sweep --runner pool --seconds 60",
        "sweep --suite range_cache --seeds 5000 --threads 8",
        "sweep --seed 5000 --seeds 5000",
        "sweep --engine controlled --executions 20000",
        "sweep --engine controlled --strategy all --rounds 10",
        "sweep --engine controlled --strategy preemptions --exhaust",
        "sweep --master spark://host:7077",
        "sweep --forever --out runs/night",
        "sweep --resume runs/ID",
    ),
    exit_codes=SEARCH,
    go_on=", then go on with pulsar-ml sweep --resume RUN",
)
@shared.suites()
@option(
    "--suite",
    multiple=True,
    metavar="NAME",
    group=shared.CODE,
    help="Suite to run. Repeatable.  [default: all]",
)
@shared.module("the product, or its checked build")
@shared.mutant()
@shared.trust
@shared.seed()
@shared.seeds(
    None,
    f"Each is one trial of each suite.  [default: {SEEDS}; with --seconds: no limit]",
)
@shared.seconds("Begin no chunk of trials, nor further runs of a trial, after this time.")
@shared.threads(64)
@shared.operations
@shared.noise
@option(
    "--runs",
    type=click.IntRange(1, MOST_RUNS),
    group=shared.SEARCH,
    help="Runs of a trial on real threads.  [default: as many as keep the cores inside runs]",
)
@option(
    "--engine",
    type=click.Choice([THREADS, CONTROLLED]),
    default=THREADS,
    show_default=True,
    group=shared.SEARCH,
    help="Real threads, or many executions of small programs under the engine.",
)
@option(
    "--mode",
    type=click.Choice(shared.MODES),
    group=shared.SEARCH,
    help="Memory model.  [default: c11]",
)
@option(
    "--strategy",
    multiple=True,
    metavar="NAME",
    group=shared.SEARCH,
    help="How schedules are chosen. Repeatable, or all (but reduce and enumerate, which search "
    "what exhaust searches): the strategies share the seeds.  [default: portfolio]",
)
@shared.executions(None, "[default: 2000]")
@shared.ignore
@shared.bounds(always=False)
@option(
    "--rounds",
    type=click.IntRange(1),
    group=shared.SEARCH,
    help="Rounds; later ones favour suites and strategies that found more.",
)
@option(
    "--floor",
    type=click.FloatRange(0),
    group=shared.SEARCH,
    help=f"Share of an equal part that each suite and strategy keeps.  [default: {FLOOR}]",
)
@option(
    "--guided",
    is_flag=True,
    group=shared.SEARCH,
    help="From the second round on, make half of the programs of strategy portfolio from programs "
    "of earlier rounds that showed much, and steer their executions.",
)
@option(
    "--exhaust",
    is_flag=True,
    group=shared.SEARCH,
    help=f"Search each program to its end, in parts of --executions ({PART_EXECUTIONS:,}).",
)
@option(
    "--parts",
    type=click.IntRange(1),
    group=shared.SEARCH,
    help="Parts of each program at the same time.  [default: 64]",
)
@shared.runner(*RUNNERS, default=SPARK)
@shared.master()
@shared.master_seconds
@shared.conf
@shared.environment
@option(
    "--task-cpus",
    type=click.IntRange(1),
    group=shared.SPARK,
    help="Cores that a task reserves.  [default: a quarter of a trial's threads]",
)
@shared.workers
@option(
    "--rows",
    type=click.Choice([DRIVER, EXECUTORS]),
    default=DRIVER,
    show_default=True,
    group=shared.SPARK,
    help="Writer of rows. Executors need a results directory that all machines share.",
)
@option(
    "--speculate/--no-speculate",
    default=False,
    group=shared.SPARK,
    help="Run stragglers twice; the first copy counts.",
)
@option(
    "--ui", is_flag=True, group=shared.SPARK, help="Serve Spark's pages and metrics; print the URL."
)
@option(
    "--chunk-size",
    type=click.IntRange(1),
    group=CHUNKS,
    help="Seeds of a chunk.  [default: a quarter of a task's time]",
)
@option(
    "--chunk-seconds",
    type=click.FloatRange(0, min_open=True),
    default=3.0,
    show_default=True,
    group=CHUNKS,
    help="Time of a task, which is some chunks.",
)
@shared.wave_seconds(30.0, CHUNKS)
@option(
    "--trial-seconds",
    type=click.FloatRange(0, min_open=True),
    default=TRIAL_LIMITS.wall,
    show_default=True,
    group=shared.LIMITS,
    help="Time of a trial, or of an execution under the engine. More is the violation hang.",
)
@option(
    "--trial-memory",
    metavar="MIB",
    type=click.IntRange(1),
    default=(TRIAL_LIMITS.memory or 0) >> 20,
    show_default=True,
    group=shared.LIMITS,
    help="Resident memory of a trial's process. More is the violation memory.",
)
@option(
    "--trial-address-space",
    metavar="MIB",
    type=click.IntRange(1),
    default=(TRIAL_LIMITS.address_space or 0) >> 20,
    show_default=True,
    group=shared.LIMITS,
    help="Address space that a trial may reserve.",
)
@option(
    "--forever",
    is_flag=True,
    group=FOREVER,
    help="Go on with more seeds until Ctrl-C or SIGTERM.",
)
@option(
    "--report-every",
    metavar="MINUTES",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    group=FOREVER,
    help="Time between two versions of RUN/report.html.",
)
@option(
    "--witnesses",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    group=FOREVER,
    help="Violations of each signature that are kept, of the smallest seeds. All count.",
)
@option("--waves", type=click.IntRange(1), group=FOREVER, help="Stop after so many waves.")
@shared.out("New results directory.  [default: runs/ID]")
@option(
    "--resume",
    metavar="RUN",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=defaults_of_run,
    group=shared.OUTPUT,
    help="Go on in this results directory. Other options default to those of the run.",
)
@option(
    "--progress",
    type=click.Choice(KINDS),
    default=AUTO,
    show_default=True,
    group=shared.OUTPUT,
    help="Display on standard error: a bar or lines, lines, JSON lines, or notes only.",
)
@option(
    "--progress-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    group=shared.OUTPUT,
    help="Also append the JSON lines to this file.",
)
@shared.baseline("an earlier results directory")
@shared.as_json
@click.pass_context
def command(context: click.Context, /, **values: Any) -> int:
    """Run seeded programs of suites, many seeds side by side.

    Each seed of each suite is one trial, on real threads, or under the engine, which decides every
    switch and every stale read. Results are Parquet tables with a row for each trial and each
    violation. They are written wave by wave, so Ctrl-C keeps finished waves; a second Ctrl-C stops
    at once. --resume goes on with a sweep, whatever ended it.
    """
    # Imported here, so that --help needs neither Arrow nor the native code.
    from pulsar_ml.sweep.sweep import sweep

    settings = {
        name for name in values if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return sweep(SweepOptions(**values, on_command_line=frozenset(settings)))

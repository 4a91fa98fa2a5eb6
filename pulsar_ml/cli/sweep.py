"""Sweeps seeds over suites, spread by Spark or by processes of this machine: ``python -m spark.sweep``.

It also starts as a file: ``spark-submit --master URL pulsar_ml/cli/sweep.py --seeds 100000``.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from pulsar_ml.campaign.plan import probe
from pulsar_ml.campaign.plan.endless import plan_without_end
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.plan.rounds import FLOOR
from pulsar_ml.campaign.run.resume import past_of, read_facts
from pulsar_ml.campaign.trial.chunk import TRIAL_LIMITS, Job
from pulsar_ml.campaign.trial.trial import CHECKED, CONTROLLED, PRODUCT, THREADS, TrialOptions
from pulsar_ml.distributed.session import PAGES, check_environment, check_master, packed
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.sweep.command_lines import REGISTRY
from pulsar_ml.sweep.forever import Forever
from pulsar_ml.sweep.options import (
    all_strategies,
    check_endless,
    check_forever,
    check_same,
    check_same_end,
    chosen_suites,
    cut,
    in_parts,
    in_rounds,
    is_path,
    limits,
    of_engine,
    of_spark,
    setting,
    size_of_seconds,
)
from pulsar_ml.sweep.progress import AUTO, KINDS, Display
from pulsar_ml.sweep.run import FAILED, INTERRUPTED, USAGE, Place, Sweep
from pulsar_ml.sweep.stop_request import StopRequest

ALL = "all"  # strategies
PART_EXECUTIONS = 100_000  # of a part of a search
MOST_TEXT = 1_000  # characters of an option that was stored
MOST_NUMBER = 1e15
# Options that are of one command and not of the run.
HERE = ("out", "as_json", "resume", "progress", "progress_file", "waves")

EPILOG = """\b
Examples:
  python -m spark.sweep                              all suites, on Spark inside this machine
  python -m spark.sweep --suite range_cache --seeds 5000 --threads 8
  python -m spark.sweep --runner pool                the same work without Java
  python -m spark.sweep --engine controlled --mode c11 --executions 20000
  python -m spark.sweep --master spark://host:7077   on a cluster where pulsar_ml is installed
  python -m spark.sweep --first-seed 5000            the next seeds, after a sweep of 5000
  python -m spark.sweep --engine controlled --strategy all --rounds 10
                                                     more for suites and strategies that find more
  python -m spark.sweep --engine controlled --strategy preemptions --exhaust --suite refcount --seeds 5
                                                     everything that two preemptions can do
  python -m spark.sweep --forever --out runs/night   more and more seeds, until Ctrl-C
  python -m spark.sweep --resume runs/ID             what an interrupted or killed sweep left to do

\b
Exit codes: 0 clean, 1 violation, 2 usage error, 3 nothing exercised, 4 failed (no Java, a chunk
crashed, ...), 130 interrupted. Whatever the code, the results directory holds what finished.
"""


def defaults_of_run(
    context: click.Context, parameter: click.Parameter, run: Path | None
) -> Path | None:
    """Lets options that are not given be those of the run that is to go on."""
    if run is not None:
        try:
            command = read_facts(run).get("command", {})
            if not isinstance(command, dict):
                raise UsageError(f"{run / 'run.json'} is damaged: its command is {command!r:.60}")
            for option in context.command.params:
                if option.name in command and not fits(option, command[option.name], context):
                    told = f"{option.name} of its command is {command[option.name]!r:.60}"
                    raise UsageError(f"{run / 'run.json'} is damaged: the {told}")
        except UsageError as error:
            context.exit(fail(f"Error: {error}", USAGE))
        context.default_map = command
        if isinstance(one := command.pop("strategy", None), str):  # of an earlier release
            command["strategies"] = [one]
    return run


def fits(option: click.Parameter, value: object, context: click.Context) -> bool:
    """Whether a value that was stored is one that the command line gives to an option."""
    if option.multiple:
        return isinstance(value, list) and all(
            isinstance(one, str) and len(one) <= MOST_TEXT for one in value
        )
    if value is None:
        return not isinstance(option.get_default(context), str | int | float)
    if isinstance(option.type, click.types.BoolParamType):
        return isinstance(value, bool)
    if isinstance(option.type, click.types.IntParamType):
        return type(value) is int
    if isinstance(option.type, click.types.FloatParamType):
        return isinstance(value, int | float) and value is not True and abs(value) < MOST_NUMBER
    return isinstance(value, str) and len(value) <= MOST_TEXT


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--suite", "names", multiple=True, metavar="NAME", help="Suite, repeatable. Default: all."
)
@click.option(
    "--seeds", default=1000, show_default=True, help="Seeds, and so trials, of each suite."
)
@click.option("--first-seed", default=0, show_default=True, help="The first of them.")
@click.option(
    "--engine",
    type=click.Choice([THREADS, CONTROLLED]),
    default=THREADS,
    show_default=True,
    help="Real threads, or many executions of small programs under the engine.",
)
@click.option("--mode", help="Engine: memory model, sc, tso or c11. Default: c11.")
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Engine: how schedules are chosen. Default: portfolio. Several, or all, share the seeds of a suite.",
)
@click.option(
    "--rounds",
    metavar="N",
    type=int,
    help="Rounds; later ones go where earlier ones found something.",
)
@click.option(
    "--floor",
    type=float,
    help=f"Rounds: what each suite and strategy keeps of an equal part. Default: {FLOOR}.",
)
@click.option(
    "--bound", type=int, help="Engine: preemptions or delays of an exhaustive strategy. Default: 2."
)
@click.option(
    "--exhaust",
    is_flag=True,
    help="Search each program to its end, in parts of --executions (100,000) that are shared out.",
)
@click.option(
    "--parts", type=int, help="Exhaust: parts of each program at the same time. Default: 64."
)
@click.option("--executions", type=int, help="Engine: executions of each program. Default: 2000.")
@click.option("--threads", type=int, help="Threads of a trial. Default: the suite's own number.")
@click.option(
    "--operations", type=int, help="Operations of each thread. Default: the suite's own number."
)
@click.option("--noise/--no-noise", default=True, help="Disturb real threads. Default: yes.")
@click.option(
    "--module", metavar="PATH", help="Native module: a name or a .so file. Default: the product."
)
@click.option(
    "--suites", "registry", default=REGISTRY, metavar="MODULE", help="Module with other SUITES."
)
@click.option("--mutant", metavar="ID", help="Mutant to select in that module.")
@click.option(
    "--runner", type=click.Choice(["spark", "pool", "inline"]), default="spark", show_default=True
)
@click.option("--master", metavar="URL", help="Any master that Spark takes. Default: local[*].")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Setting for Spark, repeatable.")
@click.option(
    "--environment", metavar="ARCHIVE", help="What executors run in, made by python -m spark.pack."
)
@click.option(
    "--task-cpus", type=click.IntRange(1), help="Cores of a task. Default: what a trial uses."
)
@click.option(
    "--workers", type=click.IntRange(1), help="Processes of the pool. Default: cores / threads."
)
@click.option(
    "--rows",
    type=click.Choice(["driver", "executors"]),
    default="driver",
    show_default=True,
    help="Who writes rows. Executors need the results on a file system that all of them have.",
)
@click.option(
    "--speculate/--no-speculate", help="Spark: run stragglers twice; the first copy counts."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="New results directory. Default: runs/ID."
)
@click.option(
    "--chunk-size", type=int, help="Seeds of a chunk. Default: an eighth of a task's time."
)
@click.option(
    "--chunk-seconds",
    default=3.0,
    show_default=True,
    help="Time that a task, some chunks, should take.",
)
@click.option(
    "--wave-seconds", default=30.0, show_default=True, help="Time between two writes of results."
)
@click.option(
    "--trial-seconds",
    type=click.FloatRange(0, min_open=True),
    default=TRIAL_LIMITS.wall,
    show_default=True,
    help="How long a trial may take, or an execution under the engine. More is the violation hang.",
)
@click.option(
    "--trial-memory",
    metavar="MIB",
    type=click.IntRange(1),
    default=(TRIAL_LIMITS.memory or 0) >> 20,
    show_default=True,
    help="What the process of a trial may have in memory. More is the violation memory.",
)
@click.option(
    "--trial-address-space",
    metavar="MIB",
    type=click.IntRange(1),
    default=(TRIAL_LIMITS.address_space or 0) >> 20,
    show_default=True,
    help="Address space that a trial may reserve, used or not.",
)
@click.option("--forever", is_flag=True, help="Go on with more seeds, until Ctrl-C or SIGTERM.")
@click.option(
    "--report-every",
    metavar="MINUTES",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Forever: how often RUN/report.html is made anew.",
)
@click.option(
    "--witnesses",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Forever: violations of each signature that are kept, those of the smallest seeds. All count.",
)
@click.option("--waves", metavar="N", type=click.IntRange(1), help="Forever: stop after N waves.")
@click.option(
    "--progress",
    type=click.Choice(KINDS),
    default=AUTO,
    show_default=True,
    help="While it runs: a line that changes on a terminal and plain lines elsewhere, plain lines, a JSON "
    "object a line, or nothing but what needs attention; on stderr.",
)
@click.option(
    "--progress-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Add the JSON lines to this file, whatever --progress says.",
)
@click.option(
    "--ui", is_flag=True, help="Serve Spark's pages and metrics on a free port, and tell it."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
@click.option(
    "--resume",
    metavar="RUN",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=defaults_of_run,
    help="Go on in this results directory. What is not said again is as it was said there.",
)
@click.pass_context
def main(
    context: click.Context,
    names: tuple[str, ...],
    seeds: int,
    first_seed: int,
    engine: str,
    mode: str | None,
    strategies: tuple[str, ...],
    rounds: int | None,
    bound: int | None,
    exhaust: bool,
    parts: int | None,
    floor: float | None,
    executions: int | None,
    threads: int | None,
    operations: int | None,
    noise: bool,
    module: str | None,
    registry: str,
    mutant: str | None,
    runner: str,
    master: str | None,
    conf: tuple[str, ...],
    environment: str | None,
    task_cpus: int | None,
    workers: int | None,
    rows: str,
    speculate: bool,
    out: Path | None,
    chunk_size: int | None,
    chunk_seconds: float,
    wave_seconds: float,
    trial_seconds: float,
    trial_memory: int,
    trial_address_space: int,
    forever: bool,
    report_every: float,
    witnesses: int,
    waves: int | None,
    progress: str,
    progress_file: Path | None,
    ui: bool,
    as_json: bool,
    resume: Path | None,
) -> None:
    """Run seeded programs over the native core, many seeds side by side: on real threads, or under the
    engine that decides every switch and every stale read.

    Each seed of each suite is one trial. Results are Parquet tables with a row per trial and a row
    per violation; they are written wave by wave, so that Ctrl-C keeps what finished (a second
    Ctrl-C does not wait). Whatever ended a sweep, --resume goes on with it.
    """
    console = Console(stderr=True)
    try:
        check_forever(context, forever)
        if forever and resume is None and out is not None and (out / "run.json").exists():
            resume = out  # the same command goes on
        past = None if resume is None else past_of(resume)
        if runner == "spark":
            check_environment()
        if master:
            check_master(master)
        if environment is not None:
            packed(Path(environment), master or "")
        if runner != "spark":
            rows, speculate = of_spark(context, runner, rows, speculate)
        place = Place(
            runner,
            master,
            {**(PAGES if ui else {}), **dict(setting(pair) for pair in conf)},
            workers,
            task_cpus,
            registry,
            environment,
            rows,
            chunk_seconds if chunk_size is None else 0.0,
            speculate,
        )
        suites = chosen_suites(registry, names)
        if module is None:
            module = CHECKED if engine == CONTROLLED else PRODUCT
        module = os.path.abspath(module) if is_path(module) else module
        named = all_strategies() if ALL in strategies else strategies
        if exhaust and engine == CONTROLLED and executions is None:
            executions = PART_EXECUTIONS
        strategy = named[0] if named else None
        given = {"mode": mode, "strategy": strategy, "executions": executions, "bound": bound}
        options = TrialOptions(
            threads=threads,
            operations=operations,
            noise=noise and engine == THREADS,
            module=module,
            mutant=mutant,
            engine=engine,
            **of_engine(engine, given),
        )
        build_id = probe.check(suites, options)
        for name in named[1:]:
            probe.check(suites, replace(options, strategy=name))
        together = tuple(suite.name for suite in suites)
        chosen = Plan(together, first_seed, 1 if forever else seeds, 1, options)
        run_id = (
            past.facts["run_id"]
            if past
            else f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
        )
        job = Job(
            run_id, build_id, options, limits(trial_seconds, trial_memory, trial_address_space)
        )
        if past and chunk_size is None:
            plan = replace(
                chosen, seeds=past.plan.seeds if forever else seeds, pieces=past.plan.pieces
            )
        elif forever:
            size = chunk_size
            if size is None:
                size = size_of_seconds(probe.measure(suites, first_seed, job), chunk_seconds)
            plan = plan_without_end(together, first_seed, size, options)
        elif exhaust:
            plan = replace(chosen, pieces=seeds)
        else:
            plan = replace(
                chosen, pieces=cut(suites, job, first_seed, seeds, chunk_size, chunk_seconds)
            )
        if forever:
            check_endless(named, rounds, exhaust=exhaust)
        parted = in_rounds(plan, named, rounds, floor)
        search = in_parts(plan, parts, exhaust=exhaust, rounds=parted)
        if past:
            check_same_end(past, forever)
            check_same(past, plan, parted, search, build_id, suites, out)
            parted, search = past.rounds, past.search
        command = {**context.params, "module": module}
        kept = {name: command[name] for name in command if name not in HERE}
        endless = Forever(report_every, witnesses, waves, chunk_seconds) if forever else None
        sweep = Sweep(plan, suites, job, place, kept, rounds=parted, search=search, forever=endless)
        with (
            closing(Display(console, kind=progress, file=progress_file)) as display,
            StopRequest() as stop,
        ):
            target = past or out or Path("runs") / run_id
            code = sweep.run(target, display, stop, wave_seconds, as_json=as_json)
    except UsageError as error:
        code = fail(f"Error: {error}", USAGE)
    except (PulsarMlError, OSError) as error:
        code = fail(f"Failed: {error}", FAILED)
    except KeyboardInterrupt:
        code = fail("Interrupted", INTERRUPTED)
    sys.exit(code)


def fail(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code

"""Sweeps seeds over suites, spread by Spark or by processes of this machine: ``python -m spark.sweep``.

It also starts as a file: ``spark-submit --master URL spark/sweep.py --seeds 100000``.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

if not __package__:
    # Started as a file, Python looks for imports beside it: this package's own modules would be
    # found as top-level ones and the suites not at all.
    BESIDE = Path(__file__).resolve().parent
    sys.path[:] = [str(BESIDE.parent), *(way for way in sys.path if Path(way or ".").resolve() != BESIDE)]

import click  # noqa: E402
from rich.console import Console  # noqa: E402

from pulsar_ml.campaign import probe  # noqa: E402
from pulsar_ml.campaign.chunk import TRIAL_LIMITS, Job  # noqa: E402
from pulsar_ml.campaign.plan import Plan, pieces_of_seconds, pieces_of_size  # noqa: E402
from pulsar_ml.campaign.resume import Past, digest_of, past_of, read_facts  # noqa: E402
from pulsar_ml.campaign.suite import Suite  # noqa: E402
from pulsar_ml.campaign.trial import CHECKED, CONTROLLED, PRODUCT, THREADS, TrialOptions  # noqa: E402
from pulsar_ml.errors import PulsarMlError, UsageError  # noqa: E402
from pulsar_ml.harness.child import Limits  # noqa: E402
from spark.commands import REGISTRY  # noqa: E402
from spark.interrupt import StopRequest  # noqa: E402
from spark.run import FAILED, INTERRUPTED, USAGE, Place, Sweep  # noqa: E402
from spark.session import check_environment, check_master  # noqa: E402

HERE = ("out", "as_json", "resume")  # options that are of one command and not of the run

EPILOG = """\b
Examples:
  python -m spark.sweep                              all suites, on Spark inside this machine
  python -m spark.sweep --suite range_cache --seeds 5000 --threads 8
  python -m spark.sweep --runner pool                the same work without Java
  python -m spark.sweep --engine controlled --mode c11 --executions 20000
  python -m spark.sweep --master spark://host:7077   on a cluster where pulsar_ml is installed
  python -m spark.sweep --first-seed 5000            the next seeds, after a sweep of 5000
  python -m spark.sweep --resume runs/ID             what an interrupted or killed sweep left to do

\b
Exit codes: 0 clean, 1 violation, 2 usage error, 3 nothing exercised, 4 failed (no Java, a chunk
crashed, ...), 130 interrupted. Whatever the code, the results directory holds what finished.
"""


def defaults_of_run(context: click.Context, parameter: click.Parameter, run: Path | None) -> Path | None:
    """Lets options that are not given be those of the run that is to go on."""
    if run is not None:
        try:
            command = read_facts(run).get("command", {})
        except UsageError as error:
            context.exit(fail(f"Error: {error}", USAGE))
        context.default_map = command if isinstance(command, dict) else {}
    return run


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--suite", "names", multiple=True, metavar="NAME", help="Suite, repeatable. Default: all.")
@click.option("--seeds", default=1000, show_default=True, help="Seeds, and so trials, of each suite.")
@click.option("--first-seed", default=0, show_default=True, help="The first of them.")
@click.option(
    "--engine",
    type=click.Choice([THREADS, CONTROLLED]),
    default=THREADS,
    show_default=True,
    help="Real threads, or many executions of small programs under the engine.",
)
@click.option("--mode", help="Engine: memory model, sc, tso or c11. Default: c11.")
@click.option("--strategy", metavar="NAME", help="Engine: how schedules are chosen. Default: portfolio.")
@click.option("--executions", type=int, help="Engine: executions of each program. Default: 2000.")
@click.option("--threads", type=int, help="Threads of a trial. Default: the suite's own number.")
@click.option("--operations", type=int, help="Operations of each thread. Default: the suite's own number.")
@click.option("--noise/--no-noise", default=True, help="Disturb real threads. Default: yes.")
@click.option("--module", metavar="PATH", help="Native module: a name or a .so file. Default: the product.")
@click.option("--suites", "registry", default=REGISTRY, metavar="MODULE", help="Module with other SUITES.")
@click.option("--mutant", metavar="ID", help="Mutant to select in that module.")
@click.option("--runner", type=click.Choice(["spark", "pool", "inline"]), default="spark", show_default=True)
@click.option("--master", metavar="URL", help="Any master that Spark takes. Default: local[*].")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Setting for Spark, repeatable.")
@click.option("--environment", metavar="ARCHIVE", help="What executors run in, made by python -m spark.pack.")
@click.option("--task-cpus", type=click.IntRange(1), help="Cores of a task. Default: what a trial uses.")
@click.option("--workers", type=click.IntRange(1), help="Processes of the pool. Default: cores / threads.")
@click.option("--out", type=click.Path(path_type=Path), help="New results directory. Default: runs/ID.")
@click.option("--chunk-size", type=int, help="Seeds of a chunk. Default: from the measured time of a trial.")
@click.option("--chunk-seconds", default=3.0, show_default=True, help="Time that a chunk should take.")
@click.option("--wave-seconds", default=30.0, show_default=True, help="Time between two writes of results.")
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
    strategy: str | None,
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
    out: Path | None,
    chunk_size: int | None,
    chunk_seconds: float,
    wave_seconds: float,
    trial_seconds: float,
    trial_memory: int,
    trial_address_space: int,
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
        past = None if resume is None else past_of(resume)
        if runner == "spark":
            check_environment()
        if master:
            check_master(master)
        place = Place(
            runner, master, dict(setting(pair) for pair in conf), workers, task_cpus, registry, environment
        )
        suites = chosen_suites(registry, names)
        if module is None:
            module = CHECKED if engine == CONTROLLED else PRODUCT
        module = os.path.abspath(module) if is_path(module) else module
        given = {"mode": mode, "strategy": strategy, "executions": executions}
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
        chosen = Plan(tuple(suite.name for suite in suites), first_seed, seeds, 1, options)
        run_id = past.facts["run_id"] if past else f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
        job = Job(run_id, build_id, options, limits(trial_seconds, trial_memory, trial_address_space))
        if past and chunk_size is None:
            pieces = past.plan.pieces
        else:
            pieces = cut(suites, job, first_seed, seeds, chunk_size, chunk_seconds)
        plan = replace(chosen, pieces=pieces)
        if past:
            check_same(past, plan, build_id, suites, out)
        command = {**context.params, "module": module}
        sweep = Sweep(plan, suites, job, place, {name: command[name] for name in command if name not in HERE})
        with StopRequest() as stop:
            target = past or out or Path("runs") / run_id
            code = sweep.run(target, console, stop, wave_seconds, as_json=as_json)
    except UsageError as error:
        code = fail(f"Error: {error}", USAGE)
    except (PulsarMlError, OSError) as error:
        code = fail(f"Failed: {error}", FAILED)
    except KeyboardInterrupt:
        code = fail("Interrupted", INTERRUPTED)
    sys.exit(code)


def check_same(past: Past, plan: Plan, build_id: str, suites: Sequence[Suite], out: Path | None) -> None:
    """``UsageError`` unless the command is about the very run that is to go on."""
    run = past.store.directory
    if out is not None and out.resolve() != run.resolve():
        raise UsageError(f"--resume goes on in {run}; --out {out} is another directory")
    if past.facts["build_id"] != build_id:
        raise UsageError(
            f"{run} is a run of build {past.facts['build_id']}, and {plan.options.module} is build "
            f"{build_id}; results of two builds are never mixed: go on with that build, or start another run"
        )
    if difference := plan.difference(past.plan):
        raise UsageError(
            f"{run} is a run of another plan: {difference}; leave that out, or start another run"
        )
    if past.facts.get("suites") != digest_of(suites):
        raise UsageError(f"the suites have changed since {run} was begun; start another run")


def chosen_suites(registry: str, names: Sequence[str]) -> list[Suite]:
    """The named suites in the order given, or all. Raises ``UsageError`` for what does not exist."""
    try:
        suites: dict[str, Suite] = import_module(registry).SUITES
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--suites needs a module with SUITES, and {registry} is none: {error}") from error
    if not suites:
        raise UsageError(f"{registry} has no suite")
    for name in names:
        if name not in suites:
            raise UsageError(f"there is no suite {name!r}; there are: {', '.join(sorted(suites))}")
    return [suites[name] for name in dict.fromkeys(names or suites)]


def cut(
    suites: Sequence[Suite],
    job: Job,
    first_seed: int,
    seeds: int,
    chunk_size: int | None,
    chunk_seconds: float,
) -> int:
    """Pieces of each suite's range: from ``--chunk-size``, or from the time that a trial takes here."""
    if chunk_size is not None:
        return pieces_of_size(seeds, chunk_size)
    spread = -(-4 * (os.cpu_count() or 1) // len(suites))  # so that even a short sweep feeds each core
    return pieces_of_seconds(seeds, probe.measure(suites, first_seed, job), chunk_seconds, spread)


def limits(seconds: float, memory: int, address_space: int) -> Limits:
    return Limits(wall=seconds, cpu=None, memory=memory << 20, address_space=address_space << 20)


def of_engine(engine: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the engine that were given. ``UsageError`` when there is no engine to take them."""
    told = {name: value for name, value in given.items() if value is not None}
    if told and engine != CONTROLLED:
        raise UsageError(f"--{next(iter(told))} is for --engine {CONTROLLED}; real threads have none")
    return told


def setting(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key:
        raise UsageError(f"--conf takes KEY=VALUE, not {pair!r}")
    return key, value


def is_path(module: str) -> bool:
    return module.endswith(".so") or "/" in module


def fail(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code


if __name__ == "__main__":
    main()

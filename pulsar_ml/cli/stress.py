"""The command line of the stress suites."""

from __future__ import annotations

import dataclasses
import json
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path

import click
from rich.console import Console

from pulsar_ml.campaign.local import saving
from pulsar_ml.campaign.local.progress import Progress
from pulsar_ml.campaign.local.records import Records, read_record
from pulsar_ml.campaign.local.replay import describe, replay
from pulsar_ml.campaign.local.results import (
    VERDICTS,
    print_suites,
    print_tally,
    suites_as_data,
    tally_as_data,
)
from pulsar_ml.campaign.local.session import (
    EXIT_CLEAN,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_NOTHING_EXERCISED,
    EXIT_USAGE,
    EXIT_VIOLATION,
    Budget,
    Tally,
    run_suite,
)
from pulsar_ml.campaign.local.watch import MEGABYTE
from pulsar_ml.campaign.trial.chunk import TRIAL_LIMITS
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import (
    PRODUCT,
    TrialOptions,
    find_subject,
    load_native,
    select_mutant,
)
from pulsar_ml.cli import explore
from pulsar_ml.cli import hunt as schedule
from pulsar_ml.cli.failures import failure_text, replay_failure
from pulsar_ml.errors import (
    BadRecordError,
    LimitsError,
    NondeterminismError,
    UsageError,
)
from pulsar_ml.suites import registry

DEFAULT_SECONDS = 10.0
DEFAULT_LEAK_MEGABYTES = 8.0

EXIT_HELP = """\b
Exit code:
  0    clean
  1    an invariant was violated
  2    the command line is wrong
  3    nothing was exercised: no two operations were seen to overlap
  4    the run could not be made (module not built, no memory, ...)
  130  interrupted with Ctrl-C; what was found so far is kept and printed
"""


class Context:
    """What all commands share: the suites, and where messages go."""

    def __init__(self, foreign: str | None) -> None:
        self.foreign = foreign
        self.suites: Mapping[str, Suite] = (
            registry.SUITES if foreign is None else registry.foreign(foreign)
        )
        self.console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
        self.progress = Progress(Console(stderr=True))

    def suite(self, name: str) -> Suite:
        if name not in self.suites:
            known = ", ".join(self.suites) or "none"
            raise UsageError(f"no suite is called {name!r}; there are: {known}")
        return self.suites[name]


@click.group(
    help=f"""Run seeded random programs on real threads, natively and without the GIL, and check
invariants while they run and when they are done.

\b
Examples:
  python -m stress list
  python -m stress run all --seconds 60
  python -m stress run mpsc_queue --threads 8 --programs 500 --seed 1
  python -m stress replay runs/stress/20250102-030405/mpsc_queue-seed17.json

{EXIT_HELP}"""
)
@click.option(
    "--suites",
    "foreign",
    metavar="MODULE",
    help="Take the suites from SUITES of this importable module instead of the project's own.",
)
@click.pass_context
def cli(context: click.Context, foreign: str | None) -> None:
    context.obj = Context(foreign)


@cli.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the suites in full as JSON.")
@click.pass_obj
def list_command(context: Context, as_json: bool) -> int:
    """Show all suites.

    \b
    Examples:
      python -m stress list
      python -m stress list --json
    """
    if as_json:
        click.echo(json.dumps(suites_as_data(context.suites), indent=2))
    else:
        print_suites(context.console, context.suites)
    return EXIT_CLEAN


@cli.command(
    "run",
    help=f"""Run one SUITE, or "all" of them in turn within one budget.

Each program follows from its seed: seed K, K+1, K+2 and so on. What the scheduler makes of it does
not, so the same seeds are worth running again. Noise (spinning, yielding, moving to another
processor) is part of the program.

\b
Examples:
  python -m stress run range_cache                       ten seconds, the suite's own threads
  python -m stress run all --seconds 300 --threads 64    many more threads than processors
  python -m stress run entry --programs 1000 --seed 1    the same thousand programs each time
  python -m stress run entry --module build/mutants/_native.so --mutant H01
  python -m stress run all --programs 200 --json > result.json

A failed program is written to the folder of --records, with the command that replays it. After a
crash of the process that folder holds running.json, the program that was in flight.

{EXIT_HELP}""",
)
@click.argument("suite")
@click.option("--threads", type=click.IntRange(1, 64), help="Real threads.  [default: the suite's]")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    help="Stop after this time.  [default: 10]",
)
@click.option("--programs", type=click.IntRange(1), help="Stop after this many programs instead.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63),
    default=0,
    show_default=True,
    help="Of the first program.",
)
@click.option(
    "--operations",
    type=click.IntRange(1, 10_000_000),
    help="Per thread and program.  [default: the suite's]",
)
@click.option("--noise/--no-noise", default=True, show_default=True, help="Disturb the schedule.")
@click.option(
    "--module",
    default=PRODUCT,
    show_default=True,
    help="Native module: a name or the path of a .so file.",
)
@click.option("--mutant", metavar="ID", help="Select this mutant in a module that has mutants.")
@click.option(
    "--failures",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Stop after so many failed programs.",
)
@click.option(
    "--leak-threshold",
    metavar="MB",
    type=click.FloatRange(0),
    default=DEFAULT_LEAK_MEGABYTES,
    show_default=True,
    help="Steady growth of resident memory that is a violation; 0: do not judge.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option(
    "--records",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where replay records go.  [default: a new folder in runs/stress]",
)
@saving.option
@click.pass_obj
def run_command(
    context: Context,
    suite: str,
    threads: int | None,
    seconds: float | None,
    programs: int | None,
    seed: int,
    operations: int | None,
    noise: bool,
    module: str,
    mutant: str | None,
    failures: int,
    leak_threshold: float,
    as_json: bool,
    folder: Path | None,
    out: Path | None,
) -> int:
    if seconds is not None and programs is not None:
        raise UsageError("--seconds and --programs are two budgets; give one of them")
    suites = list(context.suites.values()) if suite == "all" else [context.suite(suite)]
    if not suites:
        raise UsageError("there is no suite to run")
    options = TrialOptions(
        threads=threads, operations=operations, noise=noise, module=module, mutant=mutant
    )
    native = load_native(module)
    select_mutant(native, mutant)
    for each in suites:
        find_subject(native, each)
    budget = Budget(None if programs else seconds or DEFAULT_SECONDS, programs).share(len(suites))
    tallies: list[Tally] = []
    build_id = find_subject(native, suites[0]).build_id
    saved = saving.Saved(out, options, build_id, context.foreign) if out else None
    records = Records(folder)
    with saved or nullcontext(), closing(records):
        for each in suites:
            tally = run_suite(
                each,
                seed=seed,
                budget=budget,
                options=options,
                records=records,
                progress=context.progress,
                most_failures=failures,
                leak_threshold=int(leak_threshold * MEGABYTE),
                **({"told": saved.add} if saved else {}),
            )
            tallies.append(tally)
            if not as_json:
                print_tally(context.console, tally, context.foreign)
            if tally.interrupted:
                if saved:
                    saved.status = "interrupted"
                break
    code = worst(tally.exit_code() for tally in tallies)
    if as_json:
        suites_data = [tally_as_data(tally, context.foreign) for tally in tallies]
        click.echo(json.dumps({"exit_code": code, "suites": suites_data}, indent=2))
    else:
        context.console.print(f"\n{VERDICTS[code]}")
        if saved:
            context.console.print(saved.where(), soft_wrap=True, markup=False)
    return code


@cli.command(
    "replay",
    help=f"""Run the program of a RECORD (a JSON file written by a run or a sweep) again.

The program is the same each time; the schedule is not. So it runs until it fails or --repeats runs
are spent, and says how many runs that took. --count makes all runs and says how many failed. A
failure of the engine, which such a file may hold as well, is made again once, step by step. What
crashed, hung or ate the memory runs in a process of its own.

\b
Examples:
  python -m stress replay runs/stress/20250102-030405/entry-seed17.json
  python -m stress replay failed.json --repeats 1000 --count
  python -m stress replay failed.json --module pulsar_ml.operations._native

{EXIT_HELP}""",
)
@click.argument("record", type=click.Path(path_type=Path))
@click.option(
    "--repeats", type=click.IntRange(1), default=100, show_default=True, help="Runs at most."
)
@click.option("--count", "count_all", is_flag=True, help="Make all runs, also after a failure.")
@click.option(
    "--module", help="Native module: a name or a path of a .so file.  [default: the record's]"
)
@click.option(
    "--patience",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    default=TRIAL_LIMITS.wall,
    show_default=True,
    help="After so long a run that took its process along is called a hang.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_obj
def replay_command(
    context: Context,
    record: Path,
    repeats: int,
    count_all: bool,
    module: str | None,
    patience: float,
    as_json: bool,
) -> int:
    limits = dataclasses.replace(TRIAL_LIMITS, wall=patience)
    if (failure := failure_text(record)) is not None:
        return replay_failure(
            record, failure, suites=context.suites, module=module, limits=limits, as_json=as_json
        )
    content = read_record(record)
    outcome = replay(
        context.suite(content.suite),
        content,
        repeats=repeats,
        count_all=count_all,
        module=module,
        leak_threshold=int(DEFAULT_LEAK_MEGABYTES * MEGABYTE),
        limits=limits,
        progress=context.progress,
    )
    code = outcome.exit_code()
    if as_json:
        data = {
            "exit_code": code,
            "runs": outcome.runs,
            "failed": outcome.failed,
            "invariants": dict(outcome.seen),
            "recorded_build_id": content.build_id,
            "build_id": outcome.build_id,
            "other_program": outcome.other_program,
            "grown": outcome.grown,
            "interrupted": outcome.interrupted,
        }
        click.echo(json.dumps(data, indent=2))
    else:
        for line in describe(outcome):
            click.echo(line)
    return code


explore.register(cli)
cli.add_command(schedule.schedule_command)


def worst(codes: Iterable[int]) -> int:
    """One exit code for several suites."""
    found = set(codes)
    for code in (EXIT_INTERRUPTED, EXIT_VIOLATION, EXIT_NOTHING_EXERCISED):
        if code in found:
            return code
    return EXIT_CLEAN


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        return int(
            cli.main(args=arguments, prog_name="python -m stress", standalone_mode=False)
            or EXIT_CLEAN
        )
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except (UsageError, BadRecordError) as error:
        click.echo(f"error: {error}", err=True)
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except (ImportError, MemoryError, OSError, LimitsError, NondeterminismError) as error:
        click.echo(f"error: the run could not be made: {type(error).__name__}: {error}", err=True)
        if isinstance(error, ImportError):
            click.echo("is it built? python setup.py build_ext --inplace", err=True)
        return EXIT_FAILED
    except Exception:
        traceback.print_exc()
        return EXIT_FAILED

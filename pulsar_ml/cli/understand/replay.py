"""``pulsar-ml replay``: runs the program of a record again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from pulsar_ml.campaign.local.record_kind import is_failure
from pulsar_ml.campaign.local.records import read_record
from pulsar_ml.campaign.local.replay import describe, replay
from pulsar_ml.campaign.local.suites import choose_suites, load_suites
from pulsar_ml.campaign.local.watch import LEAK_MEGABYTES, MEGABYTE
from pulsar_ml.campaign.trial.chunk import TRIAL_LIMITS
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.output import print_json
from pulsar_ml.cli.understand.opened import check_of_engine
from pulsar_ml.exit_codes import SEARCH, ExitCode
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.trust import check_trusted


@new_command(
    "replay",
    examples=(
        "replay runs/stress/20250102-030405/entry-seed17.json",
        "replay failed.json --repeats 1000 --count",
        "replay failed.json --module pulsar_ml.operations._native",
        "replay failed.json --to 12",
        "replay failed.json --gdb",
    ),
    exit_codes=SEARCH,
)
@click.argument("record", type=click.Path(path_type=Path))
@shared.suites()
@shared.module("the record's")
@shared.mutant("the record's")
@shared.trust
@option(
    "--repeats",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    group=shared.PROGRAMS,
    help="Runs on real threads, at most.",
)
@option(
    "--count",
    "count_all",
    is_flag=True,
    group=shared.PROGRAMS,
    help="Make all repeats, also after a failure.",
)
@option(
    "--verbose",
    "-v",
    is_flag=True,
    group=shared.OUTPUT,
    help="Show all steps, not the essential ones alone.",
)
@option(
    "--to",
    metavar="STEP",
    type=click.IntRange(1),
    group=shared.OUTPUT,
    help="Show the steps up to this one, and the state behind it.",
)
@option(
    "--gdb",
    is_flag=True,
    group=shared.OUTPUT,
    help="Start gdb, and stop at the guilty step or at --to STEP.",
)
@option("--stop", type=int, hidden=True, help="The event of the trace at which gdb stops.")
@shared.continuations("name the step behind which failure becomes inevitable, for the engine")
@shared.in_child
@shared.patience(TRIAL_LIMITS.wall)
@shared.as_json
def command(
    record: Path,
    suites: str,
    module: str | None,
    mutant: str | None,
    trust: bool,
    repeats: int,
    count_all: bool,
    verbose: bool,
    to: int | None,
    gdb: bool,
    stop: int | None,
    continuations: int,
    sandbox: bool,
    patience: float,
    as_json: bool,
) -> ExitCode:
    """Run the program of a RECORD, a JSON file written by run, explore or sweep, again.

    Real threads run the same program with another schedule, so it runs until it fails or --repeats
    runs were made. A failure of the engine is made again once, and its essential steps are shown,
    one column for each thread. A program that crashed, hung or used up the memory runs in a process
    of its own.
    """
    limits = dataclasses.replace(TRIAL_LIMITS, wall=patience)
    if is_failure(record):
        # Imported here: it loads the engine, which real threads do not need.
        from pulsar_ml.cli.understand.engine_replay import Request, replay_failure_again

        return replay_failure_again(
            Request(
                record,
                suites,
                module,
                mutant,
                trust=trust,
                limits=limits if sandbox else None,
                continuations=continuations,
                all_steps=verbose,
                to=to,
                gdb=gdb,
                stop=stop,
                as_json=as_json,
            )
        )
    content = read_record(record)
    if to is not None or gdb:
        check_of_engine(record, suites)
    check_trusted(record, {"--module": module or content.module}, trust=trust or bool(module))
    (suite,) = choose_suites(load_suites(suites), (content.suite,))
    with ProgressDisplay() as progress:
        outcome = replay(
            suite,
            content,
            repeats=repeats,
            count_all=count_all,
            module=module,
            mutant=mutant,
            leak_threshold=int(LEAK_MEGABYTES * MEGABYTE),
            limits=limits,
            progress=progress,
        )
    code = outcome.exit_code()
    if as_json:
        print_json(
            {
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
        )
    else:
        for line in describe(outcome):
            echo(line)
    return code

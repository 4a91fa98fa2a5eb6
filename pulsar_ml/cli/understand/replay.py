"""``pulsar-ml replay``: runs the program of a record again."""

from __future__ import annotations

import dataclasses
import json
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
from pulsar_ml.exit_codes import SEARCH, ExitCode
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.terminal.command_line import command_line, short_path, suites_words
from pulsar_ml.terminal.hash_seed import restart_under
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.trust import OPTION, check_built, check_trusted, trust_words


@new_command(
    "replay",
    examples=(
        "replay runs/stress/20250102-030405/entry-seed17.json",
        "replay failed.json --repeats 1000 --count",
        "replay failed.json --module pulsar_ml.operations._native",
    ),
    exit_codes=SEARCH,
)
@click.argument("record", type=click.Path(path_type=Path))
@shared.suites()
@shared.module("the record's")
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
@shared.continuations("name the step behind which failure becomes inevitable, for the engine")
@shared.patience(TRIAL_LIMITS.wall)
@shared.as_json
def command(
    record: Path,
    suites: str,
    module: str | None,
    trust: bool,
    repeats: int,
    count_all: bool,
    continuations: int,
    patience: float,
    as_json: bool,
) -> ExitCode:
    """Run the program of a RECORD, a JSON file written by run, explore or sweep, again.

    Real threads run the same program with another schedule, so it runs until it fails or --repeats
    runs were made. A failure of the engine is made again once, step by step. A program that
    crashed, hung or used up the memory runs in a process of its own.
    """
    limits = dataclasses.replace(TRIAL_LIMITS, wall=patience)
    if is_failure(record):
        return replay_once(
            record, suites, module, limits, continuations, trust=trust, as_json=as_json
        )
    content = read_record(record)
    check_trusted(record, {"--module": module or content.module}, trust=trust or bool(module))
    (suite,) = choose_suites(load_suites(suites), (content.suite,))
    with ProgressDisplay() as progress:
        outcome = replay(
            suite,
            content,
            repeats=repeats,
            count_all=count_all,
            module=module,
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


def replay_once(
    path: Path,
    suites: str,
    module: str | None,
    limits: Limits,
    continuations: int,
    *,
    trust: bool,
    as_json: bool,
) -> ExitCode:
    """Makes a failure of the engine again."""
    # Imported here: it loads the engine, which real threads do not need.
    from pulsar_ml.campaign.local import failures
    from pulsar_ml.campaign.local.inevitability import short_line

    failure = failures.read_failure(path)
    restart_under(failure.hash_seed)
    check_trusted(path, {"--module": failure.module}, trust=trust or bool(module))
    if module is None:
        check_built(path, failure.recipe, trust=trust)
    subject = failures.subject_of(failure, module, None)
    judge = failures.judge_for(load_suites(suites), failure)
    again = failures.replay_failure(
        failure, subject, judge, limits if failure.ended_process else None
    )
    code = failures.exit_code_of(again)
    line = ""
    if continuations:
        with ProgressDisplay() as progress:
            curve = failures.shown_inevitability(
                failure, subject, judge, limits, continuations, progress
            )
        line = failures.NOT_JUDGED if not curve else short_line(curve)
    if as_json:
        print_json(
            {
                "exit_code": code,
                "exact": again.exact,
                "same_build": again.same_build,
                "verdict": again.verdict(),
                "recorded": json.loads(failure.to_json()),
                "failure": None if again.failure is None else json.loads(again.failure.to_json()),
                **({"inevitable": line} if line else {}),
            }
        )
        return code
    echo(failures.described(failure, again))
    if line:
        echo(f"  {line}")
    if again.trace:
        words = ("trace", short_path(path), *suites_words(suites))
        chosen = trust_words(failure.module) if module is None else ("--module", module)
        if failure.recipe and module is None:
            chosen = (OPTION,)
        echo(f"  its steps: {command_line(*words, *chosen)}")
    if again.proves_nothing:
        echo(f"no verdict: {again.verdict()}", err=True)
    return code

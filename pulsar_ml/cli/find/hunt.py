"""``pulsar-ml hunt``: finds a schedule for a failure that real threads showed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from pulsar_ml.campaign.local.failures import checked_subject, guarded, replay_failure
from pulsar_ml.campaign.local.records import read_record
from pulsar_ml.campaign.local.suites import choose_suites, load_suites
from pulsar_ml.campaign.shrink.hunt import NO_OUTCOME, SECONDS, search
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import CHECKED, LEAK, PRODUCT
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.output import print_json
from pulsar_ml.errors import UsageError, naming
from pulsar_ml.exit_codes import BASIC, CLEAN, VIOLATION, ExitCode
from pulsar_ml.harness.building.twin import checked_twin
from pulsar_ml.harness.replays.view import View, view_text
from pulsar_ml.terminal.command_line import command_line, short_path, suites_words
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.trust import check_trusted, trust_words


@new_command(
    "hunt",
    examples=(
        "hunt runs/stress/20250102-030405/entry-seed17.json",
        "hunt entry-seed17.json --module build/checked.so --mutant H01",
    ),
    exit_codes=(*BASIC[:1], VIOLATION, *BASIC[1:]),
)
@click.argument("record", type=click.Path(path_type=Path))
@shared.suites()
@shared.module("the checked build of the record's")
@shared.mutant("the record's")
@shared.trust
@shared.executions(200_000)
@shared.seconds(f"Begin no more executions after this time.  [default: {SECONDS:g}]")
@shared.mode
@shared.ignore
@shared.sandbox()
@shared.out("The found failure.  [default: RECORD-schedule.json]", dir_okay=False)
@shared.as_json
def command(
    record: Path,
    suites: str,
    module: str | None,
    mutant: str | None,
    trust: bool,
    executions: int,
    seconds: float | None,
    mode: str,
    ignore: tuple[str, ...],
    sandbox: bool,
    patience: float,
    out: Path | None,
    as_json: bool,
) -> ExitCode:
    """Find a schedule with which the engine shows the failure in RECORD, found by real threads.

    Exit code 1: found, and written as a failure that pulsar-ml trace shows step by step. Exit code
    0: not found within the executions.
    """
    content = read_record(record)
    (suite,) = choose_suites(load_suites(suites), (content.suite,))
    if content.invariant in NO_OUTCOME:
        raise UsageError(
            f"{record} is not about a broken invariant but about {content.invariant or 'nothing'}; "
            "the engine has no outcome to look for"
        )
    if module is None and content.module != PRODUCT:
        check_trusted(record, {"--module": content.module}, trust=trust)
        module = str(checked_twin(content.module))
    module, mutant = module or CHECKED, mutant or content.mutant
    limits = shared.sandbox_limits(sandbox, patience)
    subject = checked_subject(suite.subject, module, mutant)
    found = guarded(
        lambda: search(
            subject,
            suite,
            content,
            mode=mode,
            executions=executions,
            seconds=seconds or SECONDS,
            leaks=LEAK not in ignore,
        ),
        limits,
    )
    path = out or record.with_name(f"{record.stem}-schedule.json")
    failure = found.failure
    if failure is not None:
        failure = dataclasses.replace(failure, module=module, mutant=mutant)
        with naming(path):
            path.write_text(failure.to_json() + "\n")
    code = CLEAN if failure is None else VIOLATION
    if as_json:
        print_json(
            {
                "exit_code": code,
                "invariant": content.invariant,
                "windows": found.windows,
                "executions": found.executions,
                "others": dict(found.others),
                "failure": None if failure is None else json.loads(failure.to_json()),
            }
        )
        return code
    effort = f"{found.executions:,} executions of {found.windows} windows of the program"
    if found.others:
        names = ", ".join(f"{name} in {count:,}" for name, count in sorted(found.others.items()))
        effort += f"; others ended in another failure: {names}"
    if failure is None:
        echo(f"{content.invariant} was not broken in {effort}")
        more = f"more time (--seconds, {seconds or SECONDS:g} now) or more --executions"
        if found.others:
            more += f", or a module in which {', '.join(sorted(found.others))} holds"
        echo(f"what may help: {more}, or a record of a smaller program (run --operations)")
        return code
    echo(f"{content.invariant} was broken after {effort}")
    again = replay_failure(failure, subject, judge_of(suite.model), limits)
    echo(view_text(failure, again, subject, View()))
    replay = command_line("replay", short_path(path), *suites_words(suites), *trust_words(module))
    echo(f"  written to {path}; {replay}")
    return code

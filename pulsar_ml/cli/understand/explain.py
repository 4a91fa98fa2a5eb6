"""``pulsar-ml explain``: why a failure of the engine happened, and changes that end it."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.campaign.local.hints import cause_of
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.output import print_json
from pulsar_ml.cli.understand.opened import open_failure
from pulsar_ml.exit_codes import BASIC, FAILED, VIOLATION, ExitCode
from pulsar_ml.harness.causes.hints import MOST_HINTS, MOST_TRIED
from pulsar_ml.harness.causes.hints_file import write_hints
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay


@new_command(
    "explain",
    examples=(
        "explain runs/explore/20250102-030405/refcount-17.json",
        "explain .pulsar_ml/failures/test_queue-8ce1ba9e6d70.json --hints 5",
    ),
    exit_codes=(VIOLATION, *BASIC[1:]),
)
@click.argument("failure", type=click.Path(path_type=Path))
@shared.suites()
@shared.module("the failure's")
@shared.mutant("the failure's")
@option(
    "--hints",
    "most",
    type=click.IntRange(1, MOST_TRIED),
    default=MOST_HINTS,
    show_default=True,
    group=shared.OUTPUT,
    help="Changes to print, at most.",
)
@shared.trust
@shared.sandbox()
@shared.as_json
def command(
    failure: Path,
    suites: str,
    module: str | None,
    mutant: str | None,
    most: int,
    trust: bool,
    sandbox: bool,
    patience: float,
    as_json: bool,
) -> ExitCode:
    """Say why a FAILURE of the engine happened, and try orders, fences and locks that end it.

    Sentences come from the failing execution. Then the engine makes each change while it explores
    the failure's program, in all executions or in a sample. A change that ends the failure is a
    hint at its cause, and no proof. Both are kept beside the failure, as NAME.hints.
    """
    opened = open_failure(failure, suites, module, mutant, trust=trust)
    content = opened.failure
    limits = shared.sandbox_limits(sandbox, patience)
    with ProgressDisplay() as progress:
        cause = cause_of(
            content,
            opened.subject,
            opened.judge,
            limits,
            most,
            progress,
            rule=opened.sentence,
        )
    found = cause.hints
    try:
        write_hints(failure, content, found, cause.why, cause.inevitable)
    except OSError as error:
        echo(f"the hints are not kept: {error}", err=True)
    if as_json:
        print_json(
            {
                "exit_code": VIOLATION if found.fails_at else FAILED,
                "why": list(cause.why),
                "inevitable": cause.inevitable,
                "hints": [hint.as_data() for hint in found.found],
                "tried": found.tried,
                "why_none": found.why,
            }
        )
        return VIOLATION if found.fails_at else FAILED
    echo(content.summary())
    sentences = (*cause.why, *([cause.inevitable] if cause.inevitable else []))
    for line in ("why:", *(f"  {each}" for each in sentences)) if sentences else ():
        echo(line)
    for line in found.lines():
        echo(line)
    return VIOLATION if found.fails_at else FAILED

"""``pulsar-ml trace``: the old name of ``pulsar-ml replay -v``, for a failure of the engine."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.understand.engine_replay import Request, replay_failure_again
from pulsar_ml.exit_codes import SEARCH, ExitCode


@new_command(
    "trace",
    examples=(
        "trace runs/explore/20250102-030405/refcount-17.json",
        "trace failed.json --continuations 40",
    ),
    exit_codes=SEARCH,
)
@click.argument("failure", type=click.Path(path_type=Path))
@shared.suites()
@shared.module("the failure's")
@shared.mutant("the failure's")
@shared.continuations("print the share that fails")
@shared.trust
@shared.sandbox()
def command(
    failure: Path,
    suites: str,
    module: str | None,
    mutant: str | None,
    continuations: int,
    trust: bool,
    sandbox: bool,
    patience: float,
) -> ExitCode:
    """Make a FAILURE of the engine again and print its steps, as replay -v does."""
    return replay_failure_again(
        Request(
            failure,
            suites,
            module,
            mutant,
            trust=trust,
            limits=shared.sandbox_limits(sandbox, patience),
            continuations=continuations,
            all_steps=True,
        )
    )

"""``pulsar-ml trace``: a failure of the engine, step by step."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.campaign.local.failures import (
    exit_code_of,
    judge_for,
    read_failure,
    subject_of,
    traced,
)
from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.exit_codes import SEARCH, ExitCode
from pulsar_ml.terminal.hash_seed import restart_under
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.trust import check_built, check_trusted


@new_command(
    "trace",
    examples=("trace runs/explore/20250102-030405/refcount-17.json",),
    exit_codes=SEARCH,
)
@click.argument("failure", type=click.Path(path_type=Path))
@shared.suites()
@shared.module("the failure's")
@shared.mutant("the failure's")
@shared.trust
@shared.sandbox()
def command(
    failure: Path,
    suites: str,
    module: str | None,
    mutant: str | None,
    trust: bool,
    sandbox: bool,
    patience: float,
) -> ExitCode:
    """Make a FAILURE of the engine again and print its steps, one column for each thread."""
    content = read_failure(failure)
    restart_under(content.hash_seed)
    check_trusted(failure, {"--module": content.module}, trust=trust or bool(module))
    if module is None:
        check_built(failure, content.recipe, trust=trust)
    subject = subject_of(content, module, mutant)
    judge = judge_for(load_suites(suites), content)
    sources = (mutant or content.mutant) is None  # line numbers of a mutant are not the sources'
    limits = shared.sandbox_limits(sandbox, patience)
    again, text = traced(content, subject, judge, limits, sources=sources)
    echo(text)
    return exit_code_of(again)

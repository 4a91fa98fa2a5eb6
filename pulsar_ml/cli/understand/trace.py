"""``pulsar-ml trace``: a failure of the engine, step by step."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.campaign.local.failures import (
    exit_code_of,
    inevitability_of,
    judge_for,
    read_failure,
    subject_of,
    traced,
)
from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.exit_codes import SEARCH, ExitCode
from pulsar_ml.terminal.hash_seed import restart_under
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.trust import check_built, check_trusted

MOST_CONTINUATIONS = 1_000


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
@option(
    "--continuations",
    type=click.IntRange(0, MOST_CONTINUATIONS),
    default=0,
    show_default=True,
    group=shared.OUTPUT,
    help="Keep the steps before each switch, draw the rest anew so often, and print the share that "
    "fails.",
)
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
    marks: dict[int, str] = {}
    curve = ""
    if continuations:
        marks, curve = inevitability_of(content, subject, judge, limits, continuations)
    again, text = traced(content, subject, judge, limits, sources=sources, marks=marks)
    echo(text)
    if curve:
        echo(curve)
    return exit_code_of(again)

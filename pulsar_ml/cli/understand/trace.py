"""``pulsar-ml trace``: a failure of the engine, step by step."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.campaign.local.failures import (
    curve_text,
    exit_code_of,
    judge_for,
    read_failure,
    shown_inevitability,
    subject_of,
    traced,
)
from pulsar_ml.campaign.local.inevitability import mark_of
from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.exit_codes import SEARCH, ExitCode
from pulsar_ml.terminal.hash_seed import restart_under
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.trust import check_built, check_trusted


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
        with ProgressDisplay() as progress:
            found = shown_inevitability(content, subject, judge, limits, continuations, progress)
        marks, curve = mark_of(found or ()), curve_text(found)
    again, text = traced(content, subject, judge, limits, sources=sources, marks=marks)
    echo(text)
    if curve:
        echo(curve)
    return exit_code_of(again)

"""``schedule``: what real threads found becomes a target of the engine; the search is in the campaign."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from pulsar_ml.campaign.local.records import read_record
from pulsar_ml.campaign.shrink.hunt import NO_OUTCOME, search
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import CHECKED
from pulsar_ml.cli.explore import checked_subject, guarded, in_sandbox, limits_of, show
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.search.child import Limits


@click.command("schedule")
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--mode", type=click.Choice(("sc", "tso", "c11")), default="c11", show_default=True)
@click.option(
    "--executions", type=click.IntRange(1), default=200_000, show_default=True, help="At most."
)
@click.option(
    "--module", default=CHECKED, show_default=True, help="Checked module: a name or a .so file."
)
@click.option(
    "--into", type=click.Path(path_type=Path), help="Default: beside the record, -schedule.json."
)
@in_sandbox
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def schedule_command(
    context: Any,
    /,
    record: Path,
    mode: str,
    executions: int,
    module: str,
    into: Path | None,
    sandbox: bool,
    patience: float,
    as_json: bool,
) -> int:
    """Find a schedule for the RECORD of a failure on real threads: the same outcome, under the engine.

    The record's mutant is selected in the checked module. Exit code 1: found, and written as a failure that
    "stress trace" makes again step by step; 0: not found within the executions.

    \b
    python -m stress schedule runs/stress/20250102-030405/entry-seed17.json
    """
    content = read_record(record)
    suite = context.suite(content.suite)
    if content.invariant in NO_OUTCOME:
        raise UsageError(
            f"{record} is not about a broken invariant but about {content.invariant or 'nothing'}; "
            "the engine has no outcome to look for"
        )
    limits: Limits | None = limits_of(sandbox, patience)
    subject = checked_subject(suite.subject, module, content.mutant)
    found = guarded(
        lambda: search(subject, suite, content, mode=mode, executions=executions), limits
    )
    path = into or record.with_name(f"{record.stem}-schedule.json")
    failure = found.failure
    if failure is not None:
        failure = dataclasses.replace(failure, module=module, mutant=content.mutant)
        path.write_text(failure.to_json() + "\n")
    if as_json:
        data = {
            "exit_code": int(failure is not None),
            "invariant": content.invariant,
            "windows": found.windows,
            "executions": found.executions,
            "others": list(found.others),
            "failure": None if failure is None else json.loads(failure.to_json()),
        }
        click.echo(json.dumps(data, indent=2))
        return int(failure is not None)
    tried = f"{found.executions:,} executions of {found.windows} windows of the program"
    if found.others:
        tried += f"; other failures came first in {len(found.others)}: {', '.join(sorted(set(found.others)))}"
    if failure is None:
        click.echo(f"{content.invariant} was not broken in {tried}")
        return 0
    click.echo(f"{content.invariant} was broken after {tried}")
    show(failure, subject, table=True, limits=limits, judge=judge_of(suite.model))
    click.echo(f"  written to {path}; python -m stress replay {path}")
    return 1

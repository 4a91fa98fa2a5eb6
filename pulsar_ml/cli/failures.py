"""Failures of the engine as files: a record that says of itself that it is one is replayed exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import click

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, load_native, select_mutant
from pulsar_ml.errors import BadRecordError, PulsarMlError, UsageError
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.input_files import bounded_text

KIND = "pulsar_ml failure"  # told again here, so that other records are read without the engine


def failure_text(path: Path) -> str | None:
    """The text of the file at ``path`` if it says that it is a failure, None if it is something else."""
    try:
        text = bounded_text(path, "the record")
        content = json.loads(text)
    except (PulsarMlError, ValueError, RecursionError):
        return None  # whoever reads it as a replay record says what is wrong with it
    return text if isinstance(content, dict) and content.get("kind_of_record") == KIND else None


def replay_failure(
    path: Path,
    text: str,
    *,
    suites: Mapping[str, Suite],
    module: str | None,
    limits: Limits,
    as_json: bool,
) -> int:
    """Make a failure again, once, and print what came of it; 1 when the execution failed, else 0.

    One whose process was lost is made again in a child process, within ``limits``.
    """
    # Here, because it loads the engine, which checked modules need and real threads do not.
    from pulsar_ml.cli.explore import judge_for
    from pulsar_ml.harness.search.failure import Failure, replay
    from pulsar_ml.harness.search.lanes import summary
    from pulsar_ml.harness.search.sandbox import replay_lost

    try:
        failure = Failure.from_text(text)
    except BadRecordError as error:
        raise BadRecordError(f"{path}: {error}") from None
    name = module or failure.module or CHECKED
    native: ModuleType = load_native(name)
    subjects = getattr(native, "SUBJECTS", {})
    if failure.subject not in subjects:
        raise UsageError(
            f"{name} has no subject {failure.subject!r}; it has: {', '.join(sorted(subjects))}"
        )
    select_mutant(native, failure.mutant)
    subject = subjects[failure.subject]
    if failure.lost:
        again = replay_lost(failure, subject, limits=limits)
    else:
        again = replay(failure, subject, judge_for(suites, failure.subject))
    code = 0 if again.failure is None else 1
    if as_json:
        data = {
            "exit_code": code,
            "exact": again.exact,
            "same_build": again.same_build,
            "verdict": again.verdict(),
            "recorded": json.loads(failure.to_json()),
            "failure": None if again.failure is None else json.loads(again.failure.to_json()),
        }
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo(summary(failure, again))
    return code

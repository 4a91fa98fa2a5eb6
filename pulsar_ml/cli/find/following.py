"""``pulsar-ml linearize --follow``: a file that is still written."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from pulsar_ml.exit_codes import CLEAN, UNKNOWN, VIOLATION, ExitCode
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options
from pulsar_ml.harness.linearize.following.events import EventReader
from pulsar_ml.harness.linearize.following.follower import (
    Followed,
    Follower,
    describe_followed,
    follow,
)
from pulsar_ml.harness.linearize.following.growing import GrowingFile
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.signals import holding

ANSWERS = {LEGAL: CLEAN, ILLEGAL: VIOLATION}


def refuse_beside_follow(unsuitable: dict[str, object]) -> None:
    """Raise UsageError for an option that needs the whole history."""
    for option, value in unsuitable.items():
        if value:
            raise click.UsageError(f"{option} needs the whole history; leave it or --follow out")


def follow_file(
    file: Path, model: Any, options: Options, *, form: str, keyed: bool, failed_cas: bool,
    until_idle: float | None, as_json: bool,
) -> ExitCode:  # fmt: skip
    """Check ``file`` while it grows, and print the answer."""
    suffix = file.suffix.removeprefix(".")
    known = form or (suffix if suffix in ("jsonl", "edn", "parquet", "arrow") else "")
    reader = EventReader(file.name, known)
    follower = Follower(model, file.name, options=options, keyed=keyed, failed_cas=failed_cas)
    source = GrowingFile(file, until_idle)
    progress = ProgressDisplay()

    begun = False

    def show(one: Followed) -> None:
        nonlocal begun
        if not begun:
            begun = True
            progress.begin("following", headline=f"following {file}; Ctrl-C ends with the answer")
        progress.update(one.events, in_short(one))

    try:
        with progress, holding():
            found = follow(source, reader, follower, show)
    finally:
        source.close()
    echo(as_text(found) if as_json else describe_followed(found, model))
    return ANSWERS.get(found.answer, UNKNOWN)


def in_short(found: Followed) -> str:
    return (
        f"{found.answer} so far: {found.events:,} events, {found.operations:,} operations, of "
        f"which {found.held:,} are kept"
    )


def as_text(found: Followed) -> str:
    content: dict[str, Any] = {
        one.name: getattr(found, one.name)
        for one in dataclasses.fields(found)
        if one.name != "contradiction"
    }
    contradiction = found.contradiction
    if contradiction is not None:
        history = contradiction.history
        content["states"] = contradiction.states
        content["blocked"] = history.place(contradiction.blocked)
        content["core"] = {history.place(at): str(history.call(at)) for at in contradiction.core}
    return json.dumps(content, indent=2, default=str)

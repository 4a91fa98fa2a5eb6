"""``pulsar-ml invariants``: the invariants that suites check."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.output import console, print_json


@new_command("invariants", examples=("invariants", "invariants --suites my_suites --json"))
@shared.suites()
@shared.as_json
def command(suites: str, as_json: bool) -> None:
    """List the invariants that suites check: id, sentence, and the suites that check it."""
    sentences: dict[str, str] = {}
    checked_by: dict[str, list[str]] = {}
    for suite in load_suites(suites).values():
        for name, sentence in suite.invariants.items():
            sentences.setdefault(name, sentence)
            checked_by.setdefault(name, []).append(suite.name)
    if as_json:
        rows = [
            {"id": name, "text": text, "suites": checked_by[name]}
            for name, text in sentences.items()
        ]
        print_json(rows)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("invariant", overflow="fold", ratio=3)
    table.add_column("suites", overflow="fold", ratio=1)
    for name, sentence in sentences.items():
        table.add_row(name, Text(sentence), Text(", ".join(checked_by[name])))
    console().print(table)

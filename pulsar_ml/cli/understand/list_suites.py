"""``pulsar-ml list``: the suites."""

from __future__ import annotations

from pulsar_ml.campaign.local.results import print_suites, suites_as_data
from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.output import console, print_json


@new_command("list", examples=("list", "list --suites my_suites --json"))
@shared.suites()
@shared.as_json
def command(suites: str, as_json: bool) -> None:
    """List the suites with their threads, operations and invariants."""
    found = load_suites(suites)
    if as_json:
        print_json(suites_as_data(found))
    else:
        print_suites(console(), found)

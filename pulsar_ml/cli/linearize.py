"""``python -m pulsar_ml linearize``."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import click

from pulsar_ml.errors import PulsarMlError
from pulsar_ml.harness.histories.files import load
from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, Verdict, check
from pulsar_ml.harness.linearize.picture import describe_verdict
from pulsar_ml.harness.models import MODELS, model_named
from pulsar_ml.harness.models.conformance import check_model
from pulsar_ml.harness.models.model import Keyed, ModelError, at_fault, raised

EXITS = {LEGAL: 0, ILLEGAL: 1}
UNKNOWN_EXIT = 5


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--model", "name", required=True, metavar="NAME|MODULE:OBJECT|FILE.py:OBJECT",
    help=f"What the object should be: {', '.join(MODELS)}, or a model of yours.",
)  # fmt: skip
@click.option(
    "--keyed", is_flag=True, help="One such object for each key, the first argument of every call."
)
@click.option(
    "--no-partition", is_flag=True, help="Check independent parts together, not one by one."
)
@click.option("--no-monitors", is_flag=True, help="Search even where values are distinct.")
@click.option(
    "--steps",
    default=50_000_000,
    show_default=True,
    type=click.IntRange(1),
    help="Of all searches.",
)
@click.option(
    "--memory", default=1024, show_default=True, type=click.IntRange(1),
    help="MiB that each of the model's states, its answers and a search's configurations may take.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def linearize(
    file: Path, name: str, keyed: bool, no_partition: bool, no_monitors: bool, steps: int, memory: int,
    as_json: bool
) -> None:  # fmt: skip
    """Is the history in FILE linearizable?

    FILE is .parquet, .arrow or .jsonl as the harness writes them, .jsonl from elsewhere, or Jepsen's .edn.

    \b
    python -m pulsar_ml linearize history.jsonl --model register
    python -m pulsar_ml linearize history.edn --model cas-register --keyed
    python -m pulsar_ml linearize run.parquet --model mymodels.py:Cache

    Exit codes: 0 legal, 1 illegal, 2 something given is wrong, 5 unknown: a bound was reached first,
    130 interrupted.
    """
    sys.path.insert(0, "")  # a model of the user's is in the current directory
    history = load(file, keyed=keyed)
    model = model_named(name)
    if keyed:
        model = Keyed(model)
    options = Options(
        partition=not no_partition, monitors=not no_monitors, most_steps=steps, memory=memory << 20
    )
    try:
        check_model(model, history)
        verdict = check(history, model, options=options)
        shown = as_text(history, verdict) if as_json else describe_verdict(history, verdict, model)
    except ModelError as error:
        raise click.UsageError(f"the model {name} cannot be used: {error}") from None
    except PulsarMlError:
        raise
    except Exception as error:
        if not at_fault(model, error):
            raise
        raise click.UsageError(
            f"the model {name} cannot be used: it raised {raised(error)}"
        ) from error
    click.echo(shown)
    sys.exit(EXITS.get(verdict.answer, UNKNOWN_EXIT))


def as_text(history: History, verdict: Verdict) -> str:
    content: dict[str, Any] = {"operations": len(history), "criterion": verdict.criterion}
    content |= dataclasses.asdict(verdict)
    return json.dumps(content, indent=2, default=str)

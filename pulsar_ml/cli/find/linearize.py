"""``pulsar-ml linearize``: a recorded history against a sequential model."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.errors import PulsarMlError
from pulsar_ml.exit_codes import CLEAN, FAILED, INTERRUPTED, UNKNOWN, USAGE, VIOLATION, ExitCode
from pulsar_ml.harness.histories.files import FORMS, load_history
from pulsar_ml.harness.histories.history import History, as_value
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, Verdict, check
from pulsar_ml.harness.linearize.consistency.criteria import CRITERIA, check_criterion
from pulsar_ml.harness.linearize.consistency.text import describe_consistency
from pulsar_ml.harness.linearize.picture import describe_verdict
from pulsar_ml.harness.models import MODELS, CasRegister, Counter, Register, model_named
from pulsar_ml.harness.models.conformance import check_model
from pulsar_ml.harness.models.model import Keyed, ModelError, at_fault, raised
from pulsar_ml.terminal.printer import echo

LINEARIZABLE = "linearizable"
SHARE_OF_CONTRACT = 10  # a tenth of the time limit is for checks that a model keeps its contract
SOON = 1e-9  # seconds, which are over before the first look at the clock

ANSWERS = {LEGAL: CLEAN, ILLEGAL: VIOLATION}


@new_command(
    "linearize",
    examples=(
        "linearize history.jsonl --model register",
        "linearize history.edn --model cas-register --keyed",
        "linearize history.jsonl --model register --criterion sequential",
        "linearize history.jsonl --model queue --follow --until-idle 60",
        "linearize run.parquet --model mymodels.py:Cache",
    ),
    exit_codes=(CLEAN, VIOLATION, USAGE, FAILED, UNKNOWN, INTERRUPTED),
)
@click.argument("file", type=click.Path(path_type=Path))
@option(
    "--model",
    "name",
    required=True,
    metavar="NAME|MODULE:OBJECT|FILE.py:OBJECT",
    group="Model",
    help=f"The sequential object: {', '.join(MODELS)}, or a model of yours.",
)
@option(
    "--keyed",
    is_flag=True,
    group="Model",
    help="One such object for each key, which is the first argument of every call.",
)
@option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    group="History",
    help="Format of FILE; log is that of Jepsen. [default: by its ending, or else by its content]",
)
@option(
    "--failed-cas",
    is_flag=True,
    group="History",
    help="A compare-and-set that failed (:fail of Jepsen) found another value. [default: it is left "
    "out]",
)
@option(
    "--follow",
    "following",
    is_flag=True,
    group="History",
    help="Go on with what is appended to FILE, an event a line, until it is illegal or Ctrl-C.",
)
@option(
    "--until-idle",
    metavar="SECONDS",
    type=click.FloatRange(0),
    group="History",
    help="End --follow when nothing was appended for so long. [default: never]",
)
@option(
    "--initial",
    metavar="JSON",
    group="Model",
    help="First value of a register, a cas-register or a counter, such as 0. [default: null; 0]",
)
@option(
    "--criterion",
    default=LINEARIZABLE,
    show_default=True,
    type=click.Choice((LINEARIZABLE, *CRITERIA)),
    metavar="NAME",
    group="Model",
    help=f"The question to answer: {', '.join((LINEARIZABLE, *CRITERIA))}. The documentation has "
    "the meaning of each, and its models.",
)
@option(
    "--no-partition",
    is_flag=True,
    group=shared.LIMITS,
    help="Check independent parts together, not one by one.",
)
@option(
    "--no-monitors",
    is_flag=True,
    group=shared.LIMITS,
    help="Search also where distinct values make a faster check possible.",
)
@option(
    "--steps",
    default=50_000_000,
    show_default=True,
    type=click.IntRange(1),
    group=shared.LIMITS,
    help="Steps of all searches together.",
)
@option(
    "--memory",
    default=1024,
    show_default=True,
    type=click.IntRange(1),
    group=shared.LIMITS,
    help="MiB for each of: the model's states, its answers, the configurations of a search.",
)
@option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    group=shared.LIMITS,
    help="Time to read FILE, for the answer and for its explanation together. [default: no limit]",
)
@option(
    "--no-explain",
    is_flag=True,
    group=shared.LIMITS,
    help="Give the answer only: no core, no order, no weaker criteria.",
)
@option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    group=shared.OUTPUT,
    help="Also write a page with the operations over time, the core, and an order to step through.",
)
@shared.as_json
def command(
    file: Path,
    name: str,
    keyed: bool,
    form: str | None,
    failed_cas: bool,
    following: bool,
    until_idle: float | None,
    initial: str | None,
    criterion: str,
    no_partition: bool,
    no_monitors: bool,
    steps: int,
    memory: int,
    timeout: float | None,
    no_explain: bool,
    page: Path | None,
    as_json: bool,
) -> ExitCode:
    """Check whether the history in FILE is linearizable.

    FILE is .parquet, .arrow or .jsonl of the harness, .jsonl of another program, or Jepsen's .edn
    or log.
    """
    started = time.monotonic()
    sys.path.insert(0, "")  # where a user's model is
    if until_idle is not None and not following:
        raise click.UsageError("--until-idle ends --follow, which is not there")
    model = with_initial(name, initial)
    if keyed:
        model = Keyed(model)
    checked_for = None if timeout is None else timeout / SHARE_OF_CONTRACT
    options = Options(
        partition=not no_partition,
        monitors=not no_monitors,
        most_steps=steps,
        memory=memory << 20,
        timeout=timeout,
        explain=not no_explain,
    )
    try:
        if following:
            from pulsar_ml.cli.find.following import follow_file, refuse_beside_follow

            refuse_beside_follow(
                {"--html": page, f"--criterion {criterion}": criterion != LINEARIZABLE}
            )
            return follow_file(
                file, model, options, form=form or "", keyed=keyed, failed_cas=failed_cas,
                until_idle=until_idle, as_json=as_json,
            )  # fmt: skip
        history = load_history(file, keyed=keyed, form=form or "", failed_cas=failed_cas)
        check_model(model, history, seconds=checked_for)
        if timeout is not None:  # reading the file and checking the contract took time, too
            rest = max(SOON, timeout - (time.monotonic() - started))
            options = dataclasses.replace(options, timeout=rest)
        if criterion != LINEARIZABLE:
            if page is not None:
                raise click.UsageError(
                    f"--html shows linearizability, not {criterion}; leave it out"
                )
            return with_criterion(history, model, criterion, options, as_json=as_json)
        verdict = check(history, model, options=options)
        shown = as_text(history, verdict) if as_json else describe_verdict(history, verdict, model)
        if page is not None:
            from pulsar_ml.report.files import write
            from pulsar_ml.report.history_page import history_page

            text = history_page(history, verdict, model, name=file.name)
            write(page, text.encode(errors="replace").decode())
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
    echo(shown)
    return ANSWERS.get(verdict.answer, UNKNOWN)


def with_criterion(
    history: History, model: Any, criterion: str, options: Options, *, as_json: bool
) -> ExitCode:
    """Print the answer for a criterion beside linearizability."""
    found = check_criterion(history, model, criterion, options=options)
    if as_json:
        content = {"operations": len(history), **dataclasses.asdict(found)}
        echo(json.dumps(content, indent=2, default=str))
    else:
        echo(describe_consistency(history, found, model))
    return ANSWERS.get(found.answer, UNKNOWN)


def with_initial(name: str, initial: str | None) -> Any:
    """Return the model called ``name``, whose first value is ``initial``, a text of JSON."""
    model = model_named(name)
    if initial is None:
        return model
    if type(model) not in (Register, CasRegister, Counter):
        raise click.UsageError(
            f"--initial {initial}: the model {name} has no first value that can be given; "
            "register, cas-register and counter have one"
        )
    try:
        value = as_value(json.loads(initial))
    except (ValueError, RecursionError) as error:
        raise click.UsageError(
            f"--initial {initial:.100} is not JSON ({error}); a text has quotes, as in '\"a\"'"
        ) from None
    if type(model) is Counter and type(value) is not int:
        raise click.UsageError(f"--initial {initial}: a counter begins with an integer")
    return type(model)(value)


def as_text(history: History, verdict: Verdict) -> str:
    content: dict[str, Any] = {"operations": len(history), "criterion": verdict.criterion}
    content |= dataclasses.asdict(verdict)
    return json.dumps(content, indent=2, default=str)

"""``pulsar-ml linearize``: a recorded history against a sequential model."""

from __future__ import annotations

from pulsar_ml.cli.find import numpy_alone as _numpy_alone  # noqa: F401 - the first import of all

# isort: split
import json
import sys
from pathlib import Path
from typing import Any

import click

from pulsar_ml.cli.command import LIMITS, OUTPUT, as_json, option
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.find.checking import Checking, checked
from pulsar_ml.errors import PulsarMlError
from pulsar_ml.exit_codes import CLEAN, FAILED, INTERRUPTED, UNKNOWN, USAGE, VIOLATION, ExitCode
from pulsar_ml.harness.histories.files import FORMS
from pulsar_ml.harness.histories.history import as_value
from pulsar_ml.harness.linearize import Options
from pulsar_ml.harness.linearize.consistency.names import CRITERIA
from pulsar_ml.harness.models import MODELS, CasRegister, Counter, Register, model_named
from pulsar_ml.harness.models.model import Keyed, ModelError, at_fault, raised
from pulsar_ml.processors import processor_count
from pulsar_ml.versioned_json import json_problem

LINEARIZABLE = "linearizable"


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
    group=LIMITS,
    help="Check independent parts together, not one by one.",
)
@option(
    "--no-monitors",
    is_flag=True,
    group=LIMITS,
    help="Search also where distinct values make a faster check possible.",
)
@option(
    "--steps",
    default=50_000_000,
    show_default=True,
    type=click.IntRange(1),
    group=LIMITS,
    help="Steps of all searches together.",
)
@option(
    "--memory",
    default=1024,
    show_default=True,
    type=click.IntRange(1),
    group=LIMITS,
    help="MiB that the check may take beyond those of the history; its workers share them.",
)
@option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    group=LIMITS,
    help="Time to read FILE, for the answer and for its explanation together. [default: no limit]",
)
@option(
    "--workers",
    type=click.IntRange(1),
    group=LIMITS,
    help="Processes that check parts side by side when it takes long. [default: all processors]",
)
@option(
    "--no-explain",
    is_flag=True,
    group=LIMITS,
    help="Give the answer only: no core, no order, no weaker criteria.",
)
@option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    group=OUTPUT,
    help="Also write a page with the operations over time, the core, and an order to step through.",
)
@as_json
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
    workers: int | None,
    no_explain: bool,
    page: Path | None,
    as_json: bool,
) -> ExitCode:
    """Check whether the history in FILE is linearizable.

    FILE is .parquet, .arrow or .jsonl of the harness, .jsonl of another program, or Jepsen's .edn
    or log.
    """
    sys.path.insert(0, "")  # where a user's model is
    if until_idle is not None and not following:
        raise click.UsageError("--until-idle ends --follow, which is not there")
    model = with_initial(name, initial)
    if keyed:
        model = Keyed(model)
    options = Options(
        partition=not no_partition,
        monitors=not no_monitors,
        most_steps=steps,
        memory=memory << 20,
        timeout=timeout,
        workers=workers or processor_count(),
        explain=not no_explain,
    )
    other = "" if criterion == LINEARIZABLE else criterion
    try:
        if following:
            from pulsar_ml.cli.find.following import follow_file, refuse_beside_follow

            refuse_beside_follow({"--html": page, f"--criterion {criterion}": other})
            return follow_file(
                file, model, options, form=form or "", keyed=keyed, failed_cas=failed_cas,
                until_idle=until_idle, as_json=as_json,
            )  # fmt: skip
        if other and page is not None:
            raise click.UsageError(f"--html shows linearizability, not {criterion}; leave it out")
        checking = Checking(file, model, options, as_json=as_json)
        return checked(checking, other, page, keyed=keyed, form=form or "", failed_cas=failed_cas)
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
            f"--initial {initial:.100} is not JSON ({json_problem(error)}); a text has quotes, "
            "as in '\"a\"'"
        ) from None
    if type(model) is Counter and type(value) is not int:
        raise click.UsageError(f"--initial {initial}: a counter begins with an integer")
    return type(model)(value)

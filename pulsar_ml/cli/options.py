"""The options that several commands share: each name has one meaning, defined here once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsar_ml.campaign.trial.record import MOST_OPERATIONS
from pulsar_ml.cli.command import LIMITS as LIMITS
from pulsar_ml.cli.command import OUTPUT as OUTPUT
from pulsar_ml.cli.command import Decorator, option
from pulsar_ml.cli.command import as_json as as_json
from pulsar_ml.distributed.waiting import MASTER_SECONDS
from pulsar_ml.errors import UsageError
from pulsar_ml.terminal.command_line import DEFAULT_SUITES

if TYPE_CHECKING:
    from pulsar_ml.harness.search.child import Limits

CODE = "Code under test"
PROGRAMS = "Programs"
SEARCH = "Engine"
BUILD = "Build"
SPARK = "Where trials run"

MOST_SEED = 2**63 - 1
MODES = ("sc", "tso", "c11")
MOST_CONTINUATIONS = 1_000


def together(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, listed in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


# Code under test


def suites(default: str | None = DEFAULT_SUITES) -> Decorator:
    return option(
        "--suites",
        metavar="MODULE",
        default=default,
        group=CODE,
        help="Importable module whose SUITES are used.  [default: "
        + ("the package's own]" if default else "those of the run]"),
    )


def module(default: str) -> Decorator:
    return option(
        "--module",
        metavar="MODULE",
        default=None,
        group=CODE,
        help=f"Native module with the code under test: a name or a .so file.  [default: {default}]",
    )


trust = option(
    "--trust",
    is_flag=True,
    group=CODE,
    help="Load the modules that a record or run names, also those that are not of this "
    "installation.",
)


def mutant(default: str = "") -> Decorator:
    more = f"  [default: {default}]" if default else ""
    return option(
        "--mutant",
        metavar="ID",
        group=CODE,
        help=f"Mutant to select, in a module that has mutants.{more}",
    )


# Programs


def seed(default: int | None = 0, more: str = "") -> Decorator:
    return option(
        "--seed",
        type=click.IntRange(0, MOST_SEED),
        default=default,
        show_default=default is not None,
        group=PROGRAMS,
        help=f"First seed. {more}".strip(),
    )


def seeds(default: int | None, more: str = "") -> Decorator:
    return option(
        "--seeds",
        type=click.IntRange(1, MOST_SEED),
        default=default,
        show_default=default is not None,
        group=PROGRAMS,
        help=f"How many seeds. {more}".strip(),
    )


def seconds(help_text: str) -> Decorator:
    return option(
        "--seconds", type=click.FloatRange(0, min_open=True), group=PROGRAMS, help=help_text
    )


def budget(of: str) -> Decorator:
    """The option of a time that the tests or suites of a command share."""
    return option(
        "--budget",
        metavar="TIME",
        callback=seconds_of,
        group=PROGRAMS,
        help=f"Time for all {of} together, such as 90s, 5m or 1.5h: each gets a slice, and the "
        "rest goes to those that still find new classes of executions.",
    )


def seconds_of(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> float | None:
    """The seconds of a duration; click reports a wrong one."""
    from pulsar_ml.harness.budgets.split import duration

    try:
        return None if text is None else duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def threads(
    most: int, help_text: str = "Threads of a program.  [default: the suite's]"
) -> Decorator:
    return option("--threads", type=click.IntRange(1, most), group=PROGRAMS, help=help_text)


operations = option(
    "--operations",
    type=click.IntRange(1, MOST_OPERATIONS),
    group=PROGRAMS,
    help="Operations of each thread.  [default: the suite's]",
)
noise = option(
    "--noise/--no-noise",
    default=True,
    show_default=True,
    group=PROGRAMS,
    help="Disturb the schedule of real threads.",
)

# Engine


def executions(default: int | None, more: str = "") -> Decorator:
    return option(
        "--executions",
        type=click.IntRange(1),
        default=default,
        show_default=default is not None,
        group=SEARCH,
        help=f"Executions of each program, at most. {more}".strip(),
    )


mode = option(
    "--mode",
    type=click.Choice(MODES),
    default="c11",
    show_default=True,
    group=SEARCH,
    help="Memory model.",
)


def strategy(default: str | None, more: str = "") -> Decorator:
    from pulsar_ml.harness.engine import OFFERED

    return option(
        "--strategy",
        type=click.Choice(OFFERED),
        metavar="NAME",
        default=default,
        show_default=default is not None,
        group=SEARCH,
        help=f"How schedules are chosen: {', '.join(OFFERED)}. {more}".strip(),
    )


def faults() -> Decorator:
    from pulsar_ml.harness.engine import FAULTS

    return option(
        "--fault",
        "faults",
        multiple=True,
        type=click.Choice(tuple(FAULTS)),
        group=SEARCH,
        help="Fault that may happen. Repeatable.",
    )


suppress = option(
    "--suppress",
    multiple=True,
    metavar="PLACE",
    group=SEARCH,
    help="Known race to pass over and count: file:line, or a function of its accesses.",
)
ignore = option(
    "--ignore",
    type=click.Choice(("leak",)),
    multiple=True,
    group=SEARCH,
    help="Kind of failure that is not looked for.",
)


# Build

compiler = together(
    option(
        "-I",
        "--include",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        group=BUILD,
        help="Folder of headers and .pxd files, beside that of FILE. Repeatable.",
    ),
    option(
        "--flag", multiple=True, group=BUILD, help="Compiler flag, as --flag=-DN=4. Repeatable."
    ),
)

# Bounds of the engine: name, least value, default, help.
BOUNDS = (
    ("--bound", 0, 2, "Preemptions or delays of an exhaustive strategy."),
    ("--spins", 0, 2, "Turns of waiting loops that an exhaustive strategy lets go on at once."),
    ("--turns", 1, 16, "Turns of loops in one operation that an exhaustive strategy follows."),
    ("--stores", 3, 8, "Stores that a location remembers, 3 to 64."),
)


def bounds(*, always: bool) -> Decorator:
    """The bounds of the engine; without ``always`` one that is not given has the value None."""
    return together(
        *(
            option(
                name,
                type=click.IntRange(least, 64 if name == "--stores" else None),
                default=default if always else None,
                group=SEARCH,
                help=f"{help_text}  [default: {default}]",
            )
            for name, least, default, help_text in BOUNDS
        )
    )


in_child = option(
    "--sandbox/--no-sandbox",
    default=True,
    show_default=True,
    group=LIMITS,
    help="Run in a child process, which a crash or a hang cannot leave.",
)


def sandbox() -> Decorator:
    """Options that say whether code under test runs in a child process, and for how long."""
    return together(in_child, child_patience())


def child_patience() -> Decorator:
    """The option of how long the child process may take for an execution."""
    from pulsar_ml.harness.search.child import Limits

    return patience(Limits().wall)


def sandbox_limits(sandbox: bool, patience: float) -> Limits | None:
    """The limits of the child process; None runs code under test in this process."""
    return child_limits(patience) if sandbox else None


def child_limits(patience: float) -> Limits:
    """The limits of a child process that makes an execution at least every ``patience`` seconds."""
    from pulsar_ml.harness.search.child import Limits

    usual = Limits()
    return usual if patience == usual.wall else Limits(wall=patience, cpu=patience)


def continuations(result: str) -> Decorator:
    """The option for the continuations behind each switch of a failure."""
    return option(
        "--continuations",
        type=click.IntRange(0, MOST_CONTINUATIONS),
        default=0,
        show_default=True,
        group=OUTPUT,
        help=f"Keep the steps before each switch, draw the rest anew so often, and {result}.",
    )


def patience(default: float) -> Decorator:
    return option(
        "--patience",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        default=default,
        show_default=True,
        group=LIMITS,
        help="Time after which one run or execution is called a hang.",
    )


# Where trials run


def wave_seconds(default: float, group: str) -> Decorator:
    return option(
        "--wave-seconds",
        type=click.FloatRange(0, min_open=True),
        default=default,
        show_default=True,
        group=group,
        help="Time between two writes of results.",
    )


def runner(*choices: str, default: str) -> Decorator:
    inline = ", or (inline) this process" if "inline" in choices else ""
    return option(
        "--runner",
        type=click.Choice(choices),
        default=default,
        show_default=True,
        group=SPARK,
        help=f"Spark, or (pool) processes of this machine{inline}.",
    )


def master(default: str | None = None) -> Decorator:
    shown = default or "this machine"
    return option(
        "--master",
        metavar="URL",
        default=default,
        group=SPARK,
        help=f"Spark master: local[N], spark://HOST:PORT, k8s://URL, yarn.  [default: {shown}]",
    )


master_seconds = option(
    "--master-seconds",
    type=click.FloatRange(0, min_open=True),
    default=MASTER_SECONDS,
    show_default=True,
    group=SPARK,
    help="Time that a cluster's master may take to answer.",
)
conf = option(
    "--conf", metavar="KEY=VALUE", multiple=True, group=SPARK, help="Spark setting. Repeatable."
)
environment = option(
    "--environment",
    metavar="ARCHIVE",
    type=click.Path(path_type=Path),
    group=SPARK,
    help="Python environment of executors, made by pulsar-ml pack.",
)
workers = option(
    "--workers",
    type=click.IntRange(1),
    group=SPARK,
    help="Processes of the pool.  [default: twice as many as trials run at once]",
)

# Cache

broker_conf = option(
    "--broker-conf",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A broker.conf to read settings from.",
)

# Output


def out(help_text: str, default: str | None = None, **kind: Any) -> Decorator:
    return option(
        "--out",
        type=click.Path(path_type=Path, **kind),
        default=default,
        show_default=default is not None,
        group=OUTPUT,
        help=help_text,
    )


def baseline(of: str) -> Decorator:
    """The option of known failures, which do not fail the command."""
    return option(
        "--baseline",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="PATH",
        group=OUTPUT,
        help=f"Known failures, which are counted and named but do not fail the command: {of}, or a "
        "TOML file of known signatures. Repeatable.",
    )


run_directory = out("New results directory, as a sweep writes it.", file_okay=False)
records = option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    group=OUTPUT,
    help="Folder for records of failures.  [default: a new folder in runs/]",
)


def key_value(pair: str, name: str) -> tuple[str, str]:
    """Splits ``KEY=VALUE``; UsageError names the option otherwise."""
    key, equals, value = pair.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{name} takes KEY=VALUE, not {pair!r}")
    return key.strip(), value.strip()


def spark_settings(pairs: tuple[str, ...]) -> dict[str, str]:
    """The values of ``--conf``."""
    return dict(key_value(pair, "--conf") for pair in pairs)


def module_path(name: str) -> str:
    """A module's name, or the absolute path of a .so file."""
    return os.path.abspath(name) if name.endswith(".so") or "/" in name else name

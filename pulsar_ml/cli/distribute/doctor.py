"""``pulsar-ml doctor``: checks every executor of a cluster before a sweep uses it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.output import console, print_json
from pulsar_ml.distributed.driver import check_spark, spark_session
from pulsar_ml.distributed.machines.check import SETTINGS, differences, executors, remarks
from pulsar_ml.distributed.machines.examine import Machine, examine
from pulsar_ml.exit_codes import BASIC, CLEAN, VIOLATION, ExitCode
from pulsar_ml.terminal.tables import print_table

OPTIONAL = ("memory", "libc", "known trace", "works in", "cores")


@new_command(
    "doctor",
    examples=("doctor", "doctor --master spark://host:7077"),
    exit_codes=(*BASIC[:1], VIOLATION, *BASIC[1:]),
)
@shared.master("local[*]")
@shared.master_seconds
@shared.conf
@shared.environment
@shared.as_json
def command(
    master: str,
    master_seconds: float,
    conf: tuple[str, ...],
    environment: Path | None,
    as_json: bool,
) -> ExitCode:
    """Check each executor of a Spark cluster.

    The check covers Python, packages, the build of the native code, C library, cores, the hooks of
    the checked module, and the trace of a known search under the engine. Exit code 1: an executor
    cannot run sweeps of this build.
    """
    settings = shared.spark_settings(conf)
    check_spark(master, environment)
    driver = examine()
    with ExitStack() as stack:
        session = spark_session(
            stack,
            master,
            settings,
            environment=environment,
            more=SETTINGS,
            seconds=master_seconds,
        )
        machines = executors(session)
    return report(console(), machines, driver, as_json=as_json)


def report(
    screen: Console, machines: Sequence[Machine], driver: Machine, *, as_json: bool
) -> ExitCode:
    """Prints the findings and returns the exit code."""
    wrong = {id(machine): differences(machine, driver) for machine in [driver, *machines]}
    code = VIOLATION if any(wrong.values()) else CLEAN
    if as_json:
        data = [
            {**machine.to_data(), "wrong": wrong[id(machine)], "remarks": remarks(machine, driver)}
            for machine in machines
        ]
        print_json({"exit_code": code, "driver": driver.to_data(), "executors": data})
        return code
    print_table(screen, table(machines, driver), OPTIONAL)
    for number, machine in enumerate([driver, *machines]):
        name = f"executor {number} on {machine.host}" if number else "driver"
        for sentence in [*wrong[id(machine)], *remarks(machine, driver)]:
            screen.print(f"{name}: {sentence}", soft_wrap=True, highlight=False, markup=False)
    able = sum(not wrong[id(machine)] for machine in machines)
    screen.print(
        f"{able} of {len(machines)} executors can run sweeps of build {driver.build or 'none'}"
    )
    return code


def table(machines: Sequence[Machine], driver: Machine) -> Table:
    result = Table(title="driver and executors")
    for column in (
        "",
        "host",
        "works in",
        "Python",
        "build",
        "known trace",
        "libc",
        "cores",
        "memory",
        "",
    ):
        result.add_column(column, overflow="fold")
    for number, machine in enumerate([driver, *machines]):
        result.add_row(
            f"executor {number}" if number else "driver",
            machine.host,
            machine.directory,
            machine.python,
            machine.build or "none",
            machine.trace or "none",
            machine.libc,
            str(machine.cores),
            f"{machine.memory_mib:,} MiB",
            "WRONG" if differences(machine, driver) else "well",
        )
    return result

"""Looks at every executor of a cluster before a sweep does: ``python -m spark.doctor``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from pulsar_ml.cli.sweep import fail
from pulsar_ml.distributed.examine import Machine, examine, looked_at
from pulsar_ml.distributed.session import (
    SessionError,
    check_environment,
    check_master,
    java_message,
    open_session,
    packed,
    settings,
)
from pulsar_ml.distributed.shipping import link_installed, pack
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.sweep.command_lines import REGISTRY
from pulsar_ml.sweep.options import setting
from pulsar_ml.sweep.run import CLEAN, FAILED, INTERRUPTED, USAGE, VIOLATION

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

TOO_FEW_SLOTS = "SPARK-24819"  # Spark's mark of that error
WAIT_SECONDS = 30  # how long the executors of a cluster may take to register


class TooFewSlotsError(Exception):
    """The cluster runs fewer tasks at the same time than were asked for."""


def differences(machine: Machine, driver: Machine) -> list[str]:
    """What is wrong with an executor, or differs from the driver so that a sweep would suffer; sentences."""
    told = list(machine.problems)
    if minor(machine.python) != minor(driver.python):
        told.append(f"Python {machine.python} runs there, and {driver.python} here")
    if machine.build and machine.build != driver.build:
        told.append(
            f"build {machine.build} is installed there, and {driver.build} here: install the same wheel"
        )
    if machine.checked_build and machine.checked_build != machine.build:
        told.append(
            f"the checked module is of build {machine.checked_build}, and the product of {machine.build}"
        )
    if machine.trace and machine.trace != driver.trace:
        told.append(f"a known search gives trace {machine.trace} there, and {driver.trace} here")
    for name, here in driver.packages.items():
        there = machine.packages[name]
        if there and here and major(there) != major(here):
            told.append(f"{name} {there} is installed there, and {here} here")
    return told


def remarks(machine: Machine, driver: Machine) -> list[str]:
    """What may be so, and is good to know."""
    told = []
    if not machine.addr2line:
        told.append("addr2line is missing (package binutils): places in native code stay offsets")
    if machine.libc != driver.libc:
        told.append(f"{machine.libc} there, and {driver.libc} here")
    if machine.cores < 2:
        told.append("one core: real threads hardly meet there")
    return told


def minor(text: str) -> list[str]:
    return text.split(".")[:2]


def major(text: str) -> str:
    return text.partition(".")[0]


def executors(session: SparkSession) -> list[Machine]:
    """Every executor that has registered, once. A barrier stage takes all slots at the same time."""
    context = session.sparkContext
    try:
        told = looked(context, context.defaultParallelism)
    except TooFewSlotsError:
        told = looked(context, 1)  # Spark tells of two slots at least, and a cluster may have one
    found = {
        (machine.host, machine.directory): machine for machine in (Machine(**data) for data in told)
    }
    return [found[key] for key in sorted(found)]


def looked(context: SparkContext, slots: int) -> list[dict[str, Any]]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return context.parallelize(range(slots), slots).barrier().mapPartitions(looked_at).collect()
    except (Py4JError, PySparkException) as error:
        if TOO_FEW_SLOTS in str(error):
            raise TooFewSlotsError from error
        raise SessionError(
            f"the executors could not be looked at: {java_message(error)}"
        ) from error


def opened(
    master: str, given: dict[str, str], environment: Path | None, scratch: Path
) -> SparkSession:
    site = link_installed(scratch / "site") if environment is None else None
    defaults = settings(master, cpus=1, scratch=scratch, site=site)
    if environment is not None:
        defaults |= packed(environment, master)
    defaults |= {
        "spark.app.name": "pulsar_ml doctor",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{WAIT_SECONDS}s",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "5",
    }
    session = open_session(defaults, given, scratch=scratch, log=scratch / "spark.log")
    session.sparkContext.addPyFile(str(pack(scratch / "pulsar_ml_apps.zip", REGISTRY)))
    return session


def table(machines: Sequence[Machine], driver: Machine) -> Table:
    made = Table(title="driver and executors")
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
        made.add_column(column, overflow="fold")
    for number, machine in enumerate([driver, *machines]):
        made.add_row(
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
    return made


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--master", default="local[*]", show_default=True, metavar="URL", help="Any master of Spark."
)
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Setting for Spark, repeatable.")
@click.option(
    "--environment",
    type=click.Path(path_type=Path),
    metavar="ARCHIVE",
    help="What executors run in, made by python -m spark.pack. Default: what is installed there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(master: str, conf: tuple[str, ...], environment: Path | None, as_json: bool) -> None:
    """Look at each executor of a cluster: Python, packages, build of the native code, C library, cores,
    whether the checked module has hooks, and whether a known search under the engine gives the known trace.

    \b
    Examples:
      python -m spark.doctor
      python -m spark.doctor --master spark://host:7077

    \b
    Exit codes: 0 every executor can run sweeps of this build, 1 one cannot, 2 usage error, 4 failed (no
    Java, the cluster cannot be reached, ...), 130 interrupted.
    """
    console = Console(width=None if sys.stdout.isatty() else 150)
    try:
        given = dict(setting(pair) for pair in conf)
        check_environment()
        check_master(master)
        driver = examine()
        with tempfile.TemporaryDirectory(prefix="pulsar_ml-doctor-") as scratch:
            session = opened(master, {**given, "spark.master": master}, environment, Path(scratch))
            try:
                machines = executors(session)
            finally:
                session.stop()
        code = report(console, machines, driver, as_json=as_json)
    except UsageError as error:
        code = fail(f"Error: {error}", USAGE)
    except (PulsarMlError, OSError, RuntimeError) as error:
        code = fail(f"Failed: {error}", FAILED)
    except KeyboardInterrupt:
        code = fail("Interrupted", INTERRUPTED)
    sys.exit(code)


def report(console: Console, machines: Sequence[Machine], driver: Machine, *, as_json: bool) -> int:
    """Prints what was found; the exit code."""
    wrong = {id(machine): differences(machine, driver) for machine in [driver, *machines]}
    code = VIOLATION if any(wrong.values()) else CLEAN
    if as_json:
        data = [
            {**machine.to_data(), "wrong": wrong[id(machine)], "remarks": remarks(machine, driver)}
            for machine in machines
        ]
        click.echo(
            json.dumps({"exit_code": code, "driver": driver.to_data(), "executors": data}, indent=2)
        )
        return code
    console.print(table(machines, driver))
    for number, machine in enumerate([driver, *machines]):
        name = f"executor {number} on {machine.host}" if number else "driver"
        for sentence in [*wrong[id(machine)], *remarks(machine, driver)]:
            console.print(f"{name}: {sentence}", soft_wrap=True, highlight=False, markup=False)
    able = sum(not wrong[id(machine)] for machine in machines)
    console.print(
        f"{able} of {len(machines)} executors can run sweeps of build {driver.build or 'none'}"
    )
    return code

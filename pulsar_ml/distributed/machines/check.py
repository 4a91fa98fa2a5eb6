"""Examines every executor of a cluster and compares it with the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_ml.distributed.machines.examine import Machine, examine_here
from pulsar_ml.distributed.session import SessionError, java_message

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

TOO_FEW_SLOTS = "SPARK-24819"  # Spark's mark of that error
WAIT_SECONDS = 30  # how long the executors of a cluster may take to register


# Settings with which all executors are there before the first task, and a barrier stage fails soon.
SETTINGS = {
    "spark.app.name": "pulsar_ml doctor",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{WAIT_SECONDS}s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "5",
}


class TooFewSlotsError(Exception):
    """The cluster runs fewer tasks at the same time than were requested."""


def differences(machine: Machine, driver: Machine) -> list[str]:
    """Sentences about faults of an executor, and about harmful differences from the driver."""
    found = list(machine.problems)
    if minor(machine.python) != minor(driver.python):
        found.append(f"Python {machine.python} runs there, and {driver.python} here")
    if machine.build and machine.build != driver.build:
        found.append(
            f"build {machine.build} is installed there, and {driver.build} here: "
            "install the same wheel"
        )
    if machine.checked_build and machine.checked_build != machine.build:
        found.append(
            f"the checked module is of build {machine.checked_build}, "
            f"and the product of {machine.build}"
        )
    if machine.trace and machine.trace != driver.trace:
        found.append(f"a known search gives trace {machine.trace} there, and {driver.trace} here")
    for name, here in driver.packages.items():
        there = machine.packages[name]
        if there and here and major(there) != major(here):
            found.append(f"{name} {there} is installed there, and {here} here")
    return found


def remarks(machine: Machine, driver: Machine) -> list[str]:
    """Sentences about harmless differences from the driver."""
    found = []
    if not machine.addr2line:
        found.append("addr2line is missing (package binutils): places in native code stay offsets")
    if machine.libc != driver.libc:
        found.append(f"{machine.libc} there, and {driver.libc} here")
    if machine.cores < 2:
        found.append("one core: real threads hardly meet there")
    return found


def minor(text: str) -> list[str]:
    return text.split(".")[:2]


def major(text: str) -> str:
    return text.partition(".")[0]


def executors(session: SparkSession) -> list[Machine]:
    """Every registered executor, once. A barrier stage takes all slots at the same time."""
    context = session.sparkContext
    try:
        rows = examined(context, context.defaultParallelism)
    except TooFewSlotsError:
        rows = examined(context, 1)  # Spark reports at least two slots, and a cluster may have one
    machines = [Machine(**row) for row in rows]
    found = {(machine.host, machine.directory): machine for machine in machines}
    return [found[key] for key in sorted(found)]


def examined(context: SparkContext, slots: int) -> list[dict[str, Any]]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return (
            context.parallelize(range(slots), slots).barrier().mapPartitions(examine_here).collect()
        )
    except (Py4JError, PySparkException) as error:
        if TOO_FEW_SLOTS in str(error):
            raise TooFewSlotsError from error
        raise SessionError(
            f"the executors could not be looked at: {java_message(error)}"
        ) from error

"""Opens the Spark session of a command: settings, shipped suites, scratch space, clean-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_ml.distributed.jvm import end_jvm
from pulsar_ml.distributed.scratch import scratch_directory
from pulsar_ml.distributed.session import (
    check_answer,
    check_environment,
    check_master,
    open_session,
    packed,
    settings,
)
from pulsar_ml.distributed.shipping import is_installed, link_installed, pack
from pulsar_ml.distributed.waiting import MASTER_SECONDS, note_on_stderr
from pulsar_ml.terminal.command_line import DEFAULT_SUITES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_spark(master: str, environment: Path | None = None) -> None:
    """Raises UsageError for a wrong master or archive, SessionError when Spark cannot start here.

    A standalone master that nobody answers for is a SessionError, too: Spark itself would try for
    minutes.
    """
    check_master(master)
    if environment is not None:
        packed(environment, master)
    check_environment()
    check_answer(master)


def spark_session(
    stack: ExitStack,
    master: str,
    conf: Mapping[str, str] = {},
    *,
    suites: str = DEFAULT_SUITES,
    environment: Path | None = None,
    cpus: int = 1,
    more: Mapping[str, str] = {},
    log: Path | None = None,
    work: Path | None = None,
    seconds: float = MASTER_SECONDS,
    note: Callable[[str], None] = note_on_stderr,
) -> SparkSession:
    """A session that ends with ``stack``; the package of ``suites`` goes to its executors.

    ``conf`` are the user's settings and win over ``more``. ``log`` is for what the JVM prints,
    ``work`` for the directories of local-cluster's executors. ``seconds`` bound the wait for the
    master, of which ``note`` hears.
    """
    scratch = stack.enter_context(scratch_directory("spark"))
    site = link_installed(scratch / "site") if environment is None else None
    defaults = {**settings(master, cpus=cpus, scratch=scratch, site=site), **more}
    if environment is not None:
        defaults |= packed(environment, master)
    log = log or scratch / "spark.log"
    session = open_session(
        defaults, conf, scratch=scratch, log=log, work=work, seconds=seconds, note=note
    )
    stack.callback(_stop, session)
    if not is_installed(suites):
        session.sparkContext.addPyFile(str(pack(scratch / "pulsar_ml_suites.zip", suites)))
    return session


def _stop(session: SparkSession) -> None:
    gateway = session.sparkContext._gateway
    try:
        with suppress(Exception):  # there is nothing left to end when the JVM is gone
            session.stop()
    finally:
        end_jvm(gateway)

"""Opens the Spark session of a command: settings, shipped suites, scratch space, clean-up."""

from __future__ import annotations

import re
import shutil
import socket
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_ml.distributed.session import (
    SessionError,
    check_environment,
    check_master,
    open_session,
    packed,
    settings,
)
from pulsar_ml.distributed.shipping import link_installed, pack
from pulsar_ml.terminal.command_line import DEFAULT_SUITES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER_SECONDS = 10.0  # how long a master may take to accept a connection


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


def check_answer(master: str) -> None:
    """Raises SessionError when no host of a ``spark://`` master accepts connections."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        found = re.fullmatch(r"\[?(.*?)\]?(?::(\d+))?", address)
        host, port = found.groups() if found else (address, None)
        try:
            socket.create_connection((host, int(port or 7077)), timeout=ANSWER_SECONDS).close()
            return
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise SessionError(
        f"the Spark master {master} does not answer ({'; '.join(reasons)}); is it running? "
        "--runner pool and --master local[*] need no cluster"
    )


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
) -> SparkSession:
    """A session that ends with ``stack``; the package of ``suites`` goes to its executors.

    ``conf`` are the user's settings and win over ``more``. ``log`` is for what the JVM prints,
    ``work`` for the directories of local-cluster's executors.
    """
    scratch = Path(tempfile.mkdtemp(prefix="pulsar_ml-spark-"))
    stack.callback(shutil.rmtree, scratch, ignore_errors=True)
    site = link_installed(scratch / "site") if environment is None else None
    defaults = {**settings(master, cpus=cpus, scratch=scratch, site=site), **more}
    if environment is not None:
        defaults |= packed(environment, master)
    log = log or scratch / "spark.log"
    session = open_session(defaults, conf, scratch=scratch, log=log, work=work)
    stack.callback(_stop, session)
    session.sparkContext.addPyFile(str(pack(scratch / "pulsar_ml_suites.zip", suites)))
    return session


def _stop(session: SparkSession) -> None:
    with suppress(Exception):  # there is nothing left to end when the JVM is gone
        session.stop()

"""Opens Spark sessions: settings as plain data, Java checked first, a quiet terminal."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsar_ml.distributed.jvm import ended_when_interrupted
from pulsar_ml.distributed.waiting import MASTER_SECONDS, MasterWait, note_on_stderr
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.extras import require
from pulsar_ml.processors import processor_count

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

HOME = "SPARK_HOME"
UNPACKED = "environment"  # where executors find the archive with their Python
# Spark's pages on a free port, with the driver's metrics for Prometheus beside those in JSON.
PROMETHEUS = "spark.metrics.conf.*.sink.prometheusServlet"
PAGES = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    f"{PROMETHEUS}.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    f"{PROMETHEUS}.path": "/metrics/prometheus",
}
JAVA_OLDEST = 17
ANSWER_SECONDS = 5.0  # how long a master may take to accept a connection
TASK_ATTEMPTS = 4
DAEMON = "pulsar_ml.distributed.machines.daemon"  # of Python workers that run in this interpreter
# A second copy of what takes twice as long as three quarters of the wave's tasks, on another host.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.multiplier": "2",
    "spark.speculation.quantile": "0.75",
}
JAVA_ADVICE = (
    "install openjdk-17-jre-headless (Debian, Ubuntu), java-17-openjdk-headless (Fedora) or "
    "openjdk@17 (Homebrew on macOS), or set JAVA_HOME; --runner pool needs no Java"
)


class SessionError(PulsarMlError, RuntimeError):
    """Spark cannot be started here, in one sentence."""


@dataclass(frozen=True, slots=True)
class LocalMaster:
    """A master whose executors are on this machine, with the cores that each offers."""

    executors: int
    cores: int


def local_master(master: str) -> LocalMaster | None:
    """The executors of a master on this machine; None for a cluster."""
    machine = processor_count()
    if master == "local":
        return LocalMaster(1, 1)
    if found := re.fullmatch(r"local\[(\*|\d+)(?:,\d+)?\]", master):
        return LocalMaster(1, machine if found[1] == "*" else max(1, int(found[1])))
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return LocalMaster(int(found[1]), max(1, int(found[2])))
    return None


def on_this_machine(master: str) -> bool:
    """True when the executors of a master are here, also as a cluster on the loopback."""
    return local_master(master) is not None or bool(re.match(r"spark://(127\.|localhost:)", master))


def in_driver(master: str) -> bool:
    """True when the tasks of a master run in the driver's JVM."""
    return master.startswith("local") and not master.startswith("local-cluster")


def repeating(master: str) -> str:
    """The master with as many attempts at a task as a cluster makes; plain local[N] makes one."""
    if found := re.fullmatch(r"local(?:\[(\*|\d+)\])?", master):
        return f"local[{found[1] or 1},{TASK_ATTEMPTS}]"
    return master


def task_cpus(master: str, threads: int) -> int:
    """Cores that a task reserves: a quarter of a trial's threads, or of the cores of an executor.

    So four trials share the cores of one, and take turns with their concurrent runs. The cores of a
    cluster's executor are unknown before it runs; then the threads alone decide.
    """
    local = local_master(master)
    return max(1, (threads if local is None else min(threads, local.cores)) // 4)


def settings(master: str, *, cpus: int, scratch: Path, site: Path | None) -> dict[str, str]:
    """Spark's settings. ``site`` goes to the import path of executors on this machine."""
    chosen = {
        "spark.app.name": "pulsar_ml sweep",
        "spark.master": repeating(master),
        "spark.task.cpus": str(cpus),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A stage is one row per chunk and no shuffle: nothing for the adaptive planner to gain.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        # Arrow over a Unix socket: 16 ms a task instead of 56, most of it delayed acknowledgements.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        # The stack of a crashed worker becomes part of the task's error.
        "spark.python.worker.faulthandler.enabled": "true",
        # A trial's crash is in its row; a failed task is the machine's fault.
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
    }
    if local_master(master):
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        chosen |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "768m",
            "spark.driver.extraJavaOptions": quick,
            "spark.executor.extraJavaOptions": quick,
        }
        if site is not None:
            chosen["spark.executorEnv.PYTHONPATH"] = str(site)
    return chosen


def packed(archive: Path, master: str) -> dict[str, str]:
    """The settings for executors that run in an environment of ``pulsar-ml pack``.

    Raises ``UsageError`` without such an archive, and for tasks that run in the driver.
    """
    if not archive.is_file():
        raise UsageError(f"there is no archive {archive}; pulsar-ml pack makes one")
    if in_driver(master):
        raise UsageError(
            f"tasks of {master} run in the driver's own environment: leave --environment out"
        )
    return {"spark.archives": f"{archive.resolve()}#{UNPACKED}"}


def java_problem(environ: Mapping[str, str] = os.environ) -> str | None:
    """A sentence about the missing Java, with the package to install; None when Java is there."""
    home = environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else environ.get("PATH", ""))
    if java is None:
        place = f"in JAVA_HOME ({home})" if home else "on the PATH"
        return f"Spark needs Java {JAVA_OLDEST} or newer and there is none {place}: {JAVA_ADVICE}"
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', printed)
    if found is None:
        return f"{java} does not start ({printed.strip()[:80]!r}): {JAVA_ADVICE}"
    if int(found[1]) < JAVA_OLDEST:
        return (
            f"Spark needs Java {JAVA_OLDEST} or newer and {java} is Java {found[1]}: {JAVA_ADVICE}"
        )
    return None


def check_environment() -> None:
    """Raises an error when a Python package that Spark needs, or Java, is missing."""
    require("spark", "pyspark", purpose="Spark (--runner pool works without it)")
    if not under_spark_submit() and (problem := java_problem()):
        raise SessionError(problem)


def check_master(master: str) -> None:
    """Raises ``UsageError`` for a master that Spark does not know."""
    if local_master(master) is None and not re.match(r"(spark|k8s)://|yarn$", master):
        raise UsageError(
            f"Spark does not know the master {master!r}; use local[N], local[*], "
            "local-cluster[N,CORES,MB], spark://HOST:PORT, k8s://URL or yarn"
        )


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


def under_spark_submit(environ: Mapping[str, str] = os.environ) -> bool:
    """True when spark-submit started this process, and with it the JVM."""
    return "PYSPARK_GATEWAY_PORT" in environ


def submitted_master() -> str | None:
    """The master of spark-submit; None without spark-submit."""
    if not under_spark_submit():
        return None
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().get("spark.master")


def open_session(
    defaults: Mapping[str, str],
    values: Mapping[str, str],
    *,
    scratch: Path,
    log: Path,
    work: Path | None = None,
    seconds: float = MASTER_SECONDS,
    note: Callable[[str], None] = note_on_stderr,
) -> SparkSession:
    """A new session. ``given`` wins over options of spark-submit, and those over ``defaults``.

    The JVM prints to ``log``. Executors of local-cluster work in directories below ``work``, which
    is made. ``note`` hears of a master that does not answer at once. Raises ``SessionError`` when
    Spark cannot start, or the master did not answer within ``seconds``.
    """
    # Workers run this very interpreter, or the one that was packed for them; otherwise they take
    # whatever python3 is on their PATH.
    if any(
        settings.get("spark.archives", "").endswith(f"#{UNPACKED}")
        for settings in (values, defaults)
    ):
        os.environ["PYSPARK_PYTHON"] = f"./{UNPACKED}/bin/python"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    home = None
    master = values.get("spark.master", defaults["spark.master"])
    if local_master(master) and not under_spark_submit():
        home = home_with(scratch / "home")
        if not in_driver(master):
            link_work(home, work or scratch / "work")
    if in_driver(master) and os.environ["PYSPARK_PYTHON"] == sys.executable:
        defaults = {**defaults, "spark.python.daemon.module": DAEMON}
    if on_this_machine(master):
        # Also for machines that cannot resolve their own name; the settings alone do not cure that.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return _start(defaults, values, log, home, seconds, note)


def home_with(directory: Path) -> Path:
    """A home of Spark, made of links, whose Python workers import the packages of this process.

    In the installed home they would import its archives of sources, and compile them at each start.
    """
    import py4j
    import pyspark
    from pyspark.find_spark_home import _find_spark_home

    installed = Path(_find_spark_home())
    directory.mkdir()
    for path in installed.iterdir():
        if path.name not in ("python", "work"):
            (directory / path.name).symlink_to(path)
    for package in (pyspark, py4j):
        for archive in installed.glob(f"python/lib/{package.__name__}*.zip"):
            place = directory / "python" / "lib" / archive.name
            place.mkdir(parents=True)
            (place / package.__name__).symlink_to(Path(package.__path__[0]).resolve())
    return directory


def link_work(home: Path, work: Path) -> None:
    """Lets executors of local-cluster work below ``work``.

    They know no other setting; in the installed home they would write into the package.
    """
    work.mkdir(parents=True, exist_ok=True)
    (home / "work").symlink_to(work.resolve())


def _start(
    defaults: Mapping[str, str],
    values: Mapping[str, str],
    log: Path,
    home: Path | None,
    seconds: float,
    note: Callable[[str], None],
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf()
    if under_spark_submit():
        SparkContext._ensure_initialized()  # before it, a SparkConf lacks spark-submit's options
        conf = SparkConf()
    for key, value in values.items():
        conf.set(key, value)
    for key, value in defaults.items():
        conf.setIfMissing(key, value)
    try:
        if under_spark_submit():
            context = SparkContext(conf=conf)
        else:
            with log.open("ab") as output, at_home(home), ended_when_interrupted():
                # A process session of its own keeps Ctrl-C away from the JVM and its workers.
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    conf,
                    popen_kwargs={"stdout": output, "stderr": output, "start_new_session": True},
                )
                context = connected(conf, gateway, seconds, note)
    except (Py4JError, PySparkException) as error:
        early = "JAVA_GATEWAY_EXITED" in str(error)  # then only the JVM itself has said why
        sentence = last_words(log) if early else java_message(error)
        raise SessionError(f"Spark did not start: {sentence} (details in {log})") from error
    context.setLogLevel("ERROR")
    return SparkSession(context)


def connected(
    conf: SparkConf, gateway: Any, seconds: float, note: Callable[[str], None]
) -> SparkContext:
    """The context of a new JVM. SessionError when its master did not answer in time."""
    from pyspark import SparkContext

    master = str(conf.get("spark.master"))
    if in_driver(master):
        return SparkContext(conf=conf, gateway=gateway)
    with MasterWait(master, seconds, gateway, note) as waiting:
        try:
            return SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            if waiting.gave_up:
                raise SessionError(waiting.sentence()) from error
            raise


@contextmanager
def at_home(home: Path | None) -> Iterator[None]:
    """While it is entered, processes that start find Spark in this directory."""
    before = os.environ.get(HOME)
    if home is not None:
        os.environ[HOME] = str(home)
    try:
        yield
    finally:
        if home is not None:
            del os.environ[HOME]
            if before is not None:
                os.environ[HOME] = before


def last_words(log: Path) -> str:
    """The exception that a JVM printed, or else its last line."""
    lines = [text for text in log.read_text(errors="replace").splitlines() if text.strip()]
    thrown = [text.partition(": ")[2] for text in lines if text.startswith("Exception in thread")]
    return (thrown or lines or ["the JVM ended without a message"])[-1]


def java_message(error: BaseException) -> str:
    """The sentence in an error that came over from Java, without class names and stack."""
    for line in str(error).splitlines():
        found = re.match(r"^(?:: )?(?:[\w.$]+(?:Exception|Error): )(.+)", line.strip())
        if found:
            return found[1]
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

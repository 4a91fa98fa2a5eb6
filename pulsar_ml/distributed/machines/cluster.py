"""A standalone Spark cluster on the loopback of this machine: one master and some workers.

The processes outlive the command that starts them. One directory holds their logs, the workers'
directories, and ``cluster.json`` with the processes' numbers.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from pulsar_ml.distributed.shipping import link_installed
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.input_files import bounded_text

HOST = "127.0.0.1"
DIRECTORY = Path("build/cluster")
READY_SECONDS = 120  # two cores and a cold disk; usually 15
STOP_SECONDS = 20
POLL_SECONDS = 0.5
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
STATE = {"url": str, "workers": int, "processes": list}


class ClusterError(PulsarMlError, RuntimeError):
    """The cluster cannot be started, in one sentence."""


def start(
    directory: Path,
    *,
    workers: int,
    cores: int,
    memory: str,
    port: int | None,
    spread: bool = False,
) -> str:
    """Starts a cluster, unless one runs in the directory, and returns its master's URL.

    With ``spread`` each worker has a loopback address of its own, and so is another host for Spark.
    A ``ClusterError`` leaves nothing running.
    """
    if url := running(directory):
        return url
    stop(directory)  # the rest of a cluster that died
    directory.mkdir(parents=True, exist_ok=True)
    site = directory / "site"
    if not site.exists():
        link_installed(site)
    port, pages = port or free_port(), free_port()
    url = f"spark://{HOST}:{port}"
    arguments = ["--host", HOST, "--port", str(port), "--webui-port", str(pages)]
    state: dict[str, Any] = {
        "url": url,
        "pages": f"http://{HOST}:{pages}",
        "workers": workers,
        "processes": [],
    }
    try:
        launch(directory, state, "master", [MASTER, *arguments])
        wait_until(lambda: is_open(port), state, f"the master did not answer at {url}", directory)
        for number in range(1, workers + 1):
            host = f"127.0.0.{number + 1}" if spread else HOST
            arguments = [
                "--host",
                host,
                "--cores",
                str(cores),
                "--memory",
                memory,
                "--webui-port",
                "0",
            ]
            arguments += ["--work-dir", str(directory.resolve() / f"work-{number}"), url]
            launch(directory, state, f"worker-{number}", [WORKER, *arguments], host)
        ready = f"not all of {workers} workers came to {url}"
        wait_until(lambda: alive_workers(state["pages"]) >= workers, state, ready, directory)
    except BaseException:
        stop(directory)
        raise
    return url


def stop(directory: Path) -> list[str]:
    """Ends the processes of the cluster in a directory and returns their names."""
    state = read(directory)
    found = [(name, process) for name, process in processes(state)]
    for _, process in found:
        with suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs([process for _, process in found], timeout=STOP_SECONDS)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=STOP_SECONDS)
    if state:
        (directory / "cluster.json").unlink(missing_ok=True)
    return [name for name, _ in found]


def running(directory: Path) -> str | None:
    """The master's URL when all processes of the cluster in a directory run."""
    state = read(directory)
    if not state or len(processes(state)) < 1 + int(state["workers"]):
        return None
    return str(state["url"])


def read(directory: Path) -> dict[str, Any]:
    """The content of ``cluster.json``; empty without the file, or when it is about no cluster.

    Raises ClusterError when the file cannot be read or is damaged.
    """
    path = directory / "cluster.json"
    if not os.path.lexists(path):
        return {}
    try:
        state = json.loads(bounded_text(path, "the file"))
    except UsageError as error:
        raise ClusterError(str(error)) from None
    except (ValueError, RecursionError):
        return {}
    if not isinstance(state, dict) or not set(STATE) <= set(state):
        return {}
    try:
        right = all(isinstance(state[name], kind) for name, kind in STATE.items()) and all(
            isinstance(one["name"], str)
            and type(one["pid"]) is int
            and isinstance(one["created"], float)
            for one in state["processes"]
        )
    except (TypeError, KeyError):
        right = False
    if not right:
        raise ClusterError(
            f"{path} is damaged; end the cluster's processes by hand, and remove the file"
        )
    return state


def processes(state: Mapping[str, Any]) -> list[tuple[str, psutil.Process]]:
    """The running processes of the cluster; a number that was reused is not among them."""
    found = []
    for entry in state.get("processes", []):
        with suppress(psutil.Error, ValueError, OverflowError):  # no number of a process
            process = psutil.Process(entry["pid"])
            if (
                process.create_time() == entry["created"]
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append((str(entry["name"]), process))
    return found


def launch(
    directory: Path, state: dict[str, Any], name: str, arguments: list[str], host: str = HOST
) -> None:
    """Starts one process and notes it in ``cluster.json`` at once."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    env = {
        **{
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SPARK_", "PYSPARK_"))
        },
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(directory.resolve() / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(
            directory.resolve() / "site"
        ),  # executors see this build of pulsar_ml, and no more
    }
    pid = spawn([str(home / "bin" / "spark-class"), *arguments], env, directory / f"{name}.log")
    created = psutil.Process(pid).create_time()
    state["processes"].append({"name": name, "pid": pid, "created": created})
    (directory / "cluster.json").write_text(json.dumps(state, indent=2) + "\n")


def spawn(command: list[str], env: Mapping[str, str], log: Path) -> int:
    """Starts a process that outlives this one, in a session of its own; returns its number.

    ``subprocess`` would warn of a process that still runs when its object is forgotten.
    """
    return os.posix_spawn(
        command[0],
        command,
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def wait_until(
    ready: Callable[[], bool], state: Mapping[str, Any], failure: str, directory: Path
) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not ready():
        if len(processes(state)) < len(state["processes"]) or time.monotonic() > deadline:
            raise ClusterError(f"{failure}; the logs are in {directory}")
        time.sleep(POLL_SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def alive_workers(pages: str) -> int:
    try:
        with urllib.request.urlopen(f"{pages}/json/", timeout=5) as answer:
            return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])
    except (OSError, ValueError, KeyError):
        return 0

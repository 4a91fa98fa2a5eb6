"""The readers of a cache on the interpreters of ``tools/interpreters.py`` that are built."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Benchmark
from tools.interpreters import built
from tools.other_interpreter import OtherInterpreter, OtherInterpreterError

COMPARED = ("3.14", "3.14t")


def own_name() -> str:
    """The name of this interpreter as tools/interpreters.py has it."""
    free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"{sys.version_info.major}.{sys.version_info.minor}{free}"


def scaling_on(name: str, executable: Path, second: str) -> float:
    """Hits of two threads over those of one on another interpreter, whose core is built first."""
    python = OtherInterpreter(name, executable)
    try:
        python.install()
        core = python.build_core()
    except OtherInterpreterError as error:
        raise RuntimeError(str(error)) from error
    command = [*python.command, "-m", "benchmarks.interpreters.reader_threads", second]
    done = subprocess.run(
        command, env=python.environment(core), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return float(done.stdout)


def rows(executables: dict[str, Path], own: str) -> Iterator[Benchmark]:
    """Two rows for each interpreter that is not this one."""
    for name in COMPARED:
        if name in executables and name != own:
            for second, entry in (("another", ""), ("same", ", of one entry")):
                run = partial(scaling_on, name, executables[name], second)
                about = f"on {name}, {'without' if name.endswith('t') else 'with'} the GIL"
                title = f"readers: {name}: two threads over one{entry}"
                yield Benchmark(title, run, unit="x", about=about)


OTHER_READERS = tuple(rows(built(), own_name()))

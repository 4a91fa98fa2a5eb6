"""Python threads under the engine beside the tools of others, in one run.

The program has three threads with ten accesses each to one attribute. Figures are executions for
each second of processor time. ``frontrun`` is measured if this interpreter has it, and
``interleave_test`` if the variable PULSAR_ML_PEER_PYTHON names an interpreter that has it: it needs
Python 3.12.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.measure import Benchmark
from benchmarks.peers.python_threads import counter_test
from pulsar_ml.harness.pythreads.check import explore_python

EXECUTIONS = 20_000
PEER_EXECUTIONS = 100
LEAST_RATIO = 25.0
PEER = Path(__file__).with_name("peers") / "python_threads.py"
UNIT = "executions/s"

figures: dict[str, list[float]] = {}


def noted(name: str, figure: float) -> float:
    figures.setdefault(name, []).append(figure)
    return figure


def ours() -> float:
    done, text = explore_python(counter_test, executions=EXECUTIONS)
    if done.failure is not None:
        raise RuntimeError(text)
    return noted("ours", done.executions / done.seconds)


def peer(name: str, command: list[str]) -> float:
    words = [*command, str(PEER), name, str(PEER_EXECUTIONS)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return noted(name, found["executions"] / found["seconds"])


def peers() -> dict[str, list[str]]:
    """The tools that are here, with the command that runs a script with each of them."""
    found = {}
    wrapper = shutil.which("frontrun") or str(Path(sys.executable).with_name("frontrun"))
    if find_spec("frontrun") is not None and Path(wrapper).exists():
        found["frontrun"] = [wrapper, sys.executable]
    if other := os.environ.get("PULSAR_ML_PEER_PYTHON"):
        found["interleave_test"] = [other]
    return found


def ratio() -> float:
    """The median of ours over that of the faster tool."""
    medians = {name: median(values) for name, values in figures.items()}
    return medians.pop("ours") / max(medians.values())


def rows() -> list[Benchmark]:
    found = peers()
    others = [
        Benchmark(f"pythreads: {name}", partial(peer, name, command), unit=UNIT)
        for name, command in found.items()
    ]
    compared = [
        Benchmark(
            "pythreads: ratio to the faster tool",
            ratio,
            unit="x",
            target=LEAST_RATIO,
            at_least=True,
        )
    ]
    mine = Benchmark(
        "pythreads: three threads of ten accesses", ours, unit=UNIT, about="each access is a step"
    )
    return [mine, *others, *(compared if found else [])]


BENCHMARKS = tuple(rows())

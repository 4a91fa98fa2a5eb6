"""Python threads under the engine beside the tools of others, in one run.

The first rows are of a program with three threads of ten accesses each to one attribute, and of the
thirty programs of tests/pythreads in their mended form, the others of the time to each bug. Figures
are processor time. ``frontrun`` is measured if this interpreter has it, and ``interleave_test`` if
the variable PULSAR_ML_PEER_PYTHON names an interpreter that has it: it needs Python 3.12. A repeat
takes minutes because of them; each repeat has another seed.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.measure import Benchmark
from benchmarks.peers.python_threads import counter_test
from pulsar_ml.harness.pythreads.check import explore_python

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "pythreads" / "programs"
PEERS = Path(__file__).with_name("peers")
EXECUTIONS = 20_000
PEER_EXECUTIONS = 100
MENDED_EXECUTIONS = 2_000  # of each program
PEER_MENDED_EXECUTIONS = 50
PEER_BUG_EXECUTIONS = 1_000
PEER_SECONDS = 60
LEAST_RATIO = 25.0
OURS = "ours"
RATE, BUG = "executions/s", "ms"
NOT_FOUND = (
    f"inf: not within {PEER_BUG_EXECUTIONS} executions and {PEER_SECONDS} s, or the mended program "
    "is accused or does not come to its end"
)

Run = Callable[[], float]
figures: dict[str, list[float]] = {}  # of the program with ten accesses
rates: dict[str, dict[str, float]] = {}  # tool -> program -> executions a second
bugs: dict[str, dict[str, list[float]]] = {}  # tool -> program -> milliseconds
seeds: dict[str, Iterator[int]] = {}


def noted(name: str, figure: float) -> float:
    figures.setdefault(name, []).append(figure)
    return figure


@cache
def programs() -> list[str]:
    """The names of the programs, as ``folder/name``."""
    return sorted(
        path.relative_to(PROGRAMS).with_suffix("").as_posix()
        for path in PROGRAMS.glob("*/[a-z]*.py")
    )


def function_of(program: str, name: str) -> Callable[[], object]:
    module = import_module(f"tests.pythreads.programs.{program.replace('/', '.')}")
    function: Callable[[], object] = getattr(module, name)
    return function


def ours() -> float:
    done, text = explore_python(counter_test, executions=EXECUTIONS)
    if done.failure is not None:
        raise RuntimeError(text)
    return noted(OURS, done.executions / done.seconds)


def peer(name: str, command: list[str]) -> float:
    words = [*command, str(PEERS / "python_threads.py"), name, str(PEER_EXECUTIONS)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return noted(name, found["executions"] / found["seconds"])


def ratio() -> float:
    """The median of ours over that of the faster tool."""
    medians = {name: median(values) for name, values in figures.items()}
    return medians.pop(OURS) / max(medians.values())


def our_rates() -> float:
    found = rates[OURS] = {}
    for program in programs():
        began = time.process_time()
        done, text = explore_python(
            function_of(program, "test_mended"),
            isolated=False,
            shrinks=False,
            executions=MENDED_EXECUTIONS,
        )
        if done.failure is not None:
            raise RuntimeError(text)
        found[program] = done.executions / (time.process_time() - began)
    return median(found.values())


def run_peer(
    tool: str, command: list[str], program: str, function: str, seed: int, executions: int
) -> dict[str, float]:
    """Let another tool explore a program; {} when it does not come to an end."""
    file = str(PROGRAMS / f"{program}.py")
    words = [str(PEERS / "programs.py"), tool, file, function, str(seed), str(executions)]
    try:
        done = subprocess.run(
            [*command, *words], capture_output=True, text=True, timeout=PEER_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {}
    last = done.stdout.splitlines()[-1:]
    return json.loads(last[0]) if last and last[0].startswith("{") else {}


def peer_rates(tool: str, command: list[str]) -> float:
    """The median over the mended programs that the tool explores without accusing them."""
    found = rates[tool] = {}
    for program in programs():
        done = run_peer(tool, command, program, "test_mended", 1, PEER_MENDED_EXECUTIONS)
        if done and not done["failed"] and done["executions"] == PEER_MENDED_EXECUTIONS:
            found[program] = done["executions"] / done["seconds"]
    return median(found.values())


def ratio_of_programs() -> float:
    """The median over the programs of our rate by that of the faster tool."""
    mine = rates[OURS]
    others = [found for tool, found in rates.items() if tool != OURS]
    return median(
        mine[program] / max(found[program] for found in others if program in found)
        for program in mine
        if any(program in found for found in others)
    )


def seed_of(row: str) -> int:
    return next(seeds.setdefault(row, count()))


def noted_bug(tool: str, program: str, took: float) -> float:
    bugs.setdefault(tool, {}).setdefault(program, []).append(took)
    return took


def our_bug(program: str) -> float:
    began = time.process_time()
    done, _ = explore_python(
        function_of(program, "test_buggy"),
        isolated=False,
        shrinks=False,
        seed=seed_of(program),
    )
    took = math.inf if done.failure is None else 1000 * (time.process_time() - began)
    return noted_bug(OURS, program, took)


def peer_bug(tool: str, command: list[str], program: str) -> float:
    """Milliseconds to the bug; inf also for a tool that accuses the mended program."""
    if program not in rates.get(tool, {}):
        return noted_bug(tool, program, math.inf)
    seed = seed_of(f"{tool} {program}")
    done = run_peer(tool, command, program, "test_buggy", seed, PEER_BUG_EXECUTIONS)
    took = 1000 * done["seconds"] if done and done["failed"] else math.inf
    return noted_bug(tool, program, took)


def ratio_of_bugs() -> float:
    """The median over the programs of the faster tool's time to the bug by ours."""
    mine = {program: median(times) for program, times in bugs[OURS].items()}
    others = [found for tool, found in bugs.items() if tool != OURS]
    return median(
        min(median(found[program]) for found in others) / mine[program] for program in mine
    )


def peers() -> dict[str, list[str]]:
    """The tools that are here, with the command that runs a script with each of them."""
    found = {}
    wrapper = shutil.which("frontrun") or str(Path(sys.executable).with_name("frontrun"))
    if find_spec("frontrun") is not None and Path(wrapper).exists():
        found["frontrun"] = [wrapper, sys.executable]
    if other := os.environ.get("PULSAR_ML_PEER_PYTHON"):
        found["interleave_test"] = [other]
    return found


def compared(name: str, run: Run, target: float | None = LEAST_RATIO) -> Benchmark:
    return Benchmark(f"pythreads: {name}", run, unit="x", target=target, at_least=True)


def rows() -> Iterator[Benchmark]:
    found = peers()
    yield Benchmark(
        "pythreads: three threads of ten accesses", ours, unit=RATE, about="each access is a step"
    )
    for name, command in found.items():
        yield Benchmark(f"pythreads: {name}", partial(peer, name, command), unit=RATE)
    if found:
        yield compared("ratio to the faster tool", ratio)
    yield Benchmark("pythreads: median of thirty programs", our_rates, unit=RATE)
    for name, command in found.items():
        run = partial(peer_rates, name, command)
        yield Benchmark(f"pythreads: thirty programs, {name}", run, unit=RATE)
    if found:
        yield compared("median ratio of the programs", ratio_of_programs)
    for program in programs():
        yield Benchmark(f"pythreads: bug of {program}", partial(our_bug, program), unit=BUG)
        for name, command in found.items():
            bug = partial(peer_bug, name, command, program)
            yield Benchmark(f"pythreads: bug of {program}, {name}", bug, unit=BUG, about=NOT_FOUND)
    if found:
        yield compared("median ratio of the times to a bug", ratio_of_bugs, None)


BENCHMARKS = tuple(rows())

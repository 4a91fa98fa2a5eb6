"""Fuzzes the Python face for hours: each seed in a process of its own.

A process that crashes, hangs, or raises what it may not is reported with its seed and the command
that repeats it; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.face_fuzz.pairs import CONTROLS, Scene

SECONDS_PER_CALL = 0.02  # a process that takes longer hangs
LEAST_SECONDS = 600.0
PAIR_CALLS = 10  # of each thread
PAIR_ROUNDS = 20


@dataclass(slots=True)
class Run:
    """The calls of one seed: how many, what they did, which returned, and the problem, or ""."""

    calls: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    problem: str = ""
    returned: set[str] = field(default_factory=set)


def command(seed: int, calls: int, threads: int, planted: str = "") -> list[str]:
    options = [f"--seed={seed}", f"--calls={calls}", f"--threads={threads}"]
    options += [f"--planted={planted}"] if planted else []
    return [sys.executable, "-m", "tests.face_fuzz.child", *options]


def pairs_command(kind: str, seed: int, calls: int, rounds: int, only: str = "") -> list[str]:
    """The command for the pairs of a class, each with so many calls of each thread and objects."""
    options = [f"--pairs={kind}", f"--seed={seed}", f"--calls={calls}", f"--rounds={rounds}"]
    options += [f"--only={only}"] if only else []
    return [sys.executable, "-m", "tests.face_fuzz.child", *options]


def run_seed(
    seed: int, calls: int, threads: int, *, seconds: float | None = None, planted: str = ""
) -> Run:
    """Fuzzes one seed in a process; ``seconds``: when it counts as stuck."""
    words = command(seed, calls, threads, planted)
    return run_child(words, seed, seconds or max(LEAST_SECONDS, calls * SECONDS_PER_CALL))


def run_child(words: list[str], seed: int, patience: float) -> Run:
    """Runs a process of the fuzzer, which counts as stuck after ``patience`` seconds."""
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        hangs = False
        try:
            output, errors = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            hangs = True
            process.send_signal(signal.SIGUSR1)  # prints where each thread is
            try:
                output, errors = process.communicate(timeout=2)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
        except BaseException:
            process.kill()
            raise
    if hangs or process.returncode:
        end = f"no end after {patience:g} s" if hangs else f"exit code {process.returncode}"
        return Run(problem=f"seed {seed}: {end}\n  {' '.join(words)}\n{errors[-4000:]}")
    counts = json.loads(output.splitlines()[-1])
    return Run(counts["calls"], Counter(counts["outcomes"]), returned=set(counts["returned"]))


def is_enough(wanted: argparse.Namespace, seconds: float, seeds: int, calls: int) -> bool:
    """True when the options ask for no more than there was."""
    if wanted.seconds is not None:
        return seconds >= float(wanted.seconds)
    if wanted.seeds is not None:
        return seeds >= int(wanted.seeds)
    return calls >= int(wanted.calls)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.face_fuzz", description=__doc__)
    options.add_argument("--seconds", type=float, help="how long; default: until --calls")
    options.add_argument("--calls", type=int, default=1_000_000, help="how many; default 1,000,000")
    options.add_argument("--seed", type=int, default=0, help="the first seed; default 0")
    options.add_argument("--seeds", type=int, help="how many seeds, in place of --calls")
    options.add_argument("--calls-per-seed", type=int, default=20_000)
    options.add_argument(
        "--pairs", action="store_true",
        help="each member of a class beside each other one, from two threads on one object",
    )  # fmt: skip
    options.add_argument(
        "--rounds", type=int, default=PAIR_ROUNDS, help="objects of each pair; default %(default)s"
    )
    arguments = options.parse_args()
    begun = time.monotonic()
    total, seed, problems = Run(), arguments.seed, 0
    while True:
        if is_enough(arguments, time.monotonic() - begun, seed - arguments.seed, total.calls):
            break
        if arguments.pairs:
            kinds = [kind for kind in Scene.MAKERS if kind not in CONTROLS]
            words = pairs_command(kinds[seed % len(kinds)], seed, PAIR_CALLS, arguments.rounds)
            run = run_child(words, seed, LEAST_SECONDS)
        else:
            # Odd seeds have three threads.
            run = run_seed(seed, arguments.calls_per_seed, 3 if seed % 2 else 1)
        total.calls += run.calls
        total.outcomes += run.outcomes
        if run.problem:
            problems += 1
            print(run.problem, flush=True)
        seed += 1
        rate = total.calls / (time.monotonic() - begun)
        print(
            f"{total.calls:,} calls, {seed - arguments.seed} seeds, {problems} problems, "
            f"{rate:,.0f} calls/s",
            flush=True,
        )
    print(", ".join(f"{name} {count:,}" for name, count in total.outcomes.most_common()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Trials under the thread sanitizer, in a separate process, which loads its runtime before Python.

``python -m stress.mutants.table.sanitized_trials MODULE`` reads lines [label, seeds] from standard
input and answers each with one line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from pulsar_ml.harness.search.descendants import threads_here
from stress.mutants.build import ROOT
from stress.mutants.table.techniques import (
    TECHNIQUES,
    Case,
    Trial,
    attempts,
    cases,
    load,
    seeds_of,
)
from tools.sanitized import OPTIONS, runtime


def trials(module: Path, chosen: Iterable[Case], seeds: int) -> Iterator[tuple[Case, list[Trial]]]:
    """Yields the trials of each case in turn. Closing the iterator ends the process."""
    environment = {**os.environ, **OPTIONS["thread"], "LD_PRELOAD": runtime("thread")}
    # The children of a trial are forks of a process with one thread.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    environment["TSAN_OPTIONS"] += " die_after_fork=0 log_path=/dev/null"
    # Address space layout randomisation can collide with the sanitizer's shadow memory.
    prefix = ["setarch", "-R"] if shutil.which("setarch") else []
    command = [*prefix, sys.executable, "-m", __name__, str(module)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for case in chosen:
                process.stdin.write(json.dumps([case.label, seeds_of(case, seeds)]) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(
                        f"the process of the thread sanitizer ended unexpectedly at {case.label}"
                    )
                yield case, [Trial(**one) for one in json.loads(line)]
        finally:
            process.kill()


def check_threads() -> None:
    """Raises RuntimeError if this process has more than one thread.

    The sanitizer would take a thread of a forked child for one of its parent, and end the child
    with the status of a data race.
    """
    if (count := threads_here()) > 1:
        raise RuntimeError(
            f"{count} threads where the thread sanitizer's forks need one: "
            "a module that was imported has started a thread"
        )


def main() -> None:
    path = Path(sys.argv[1])
    module = load(path)
    by_label = {case.label: case for case in cases()}
    check_threads()
    for line in sys.stdin:
        label, seeds = json.loads(line)
        found = attempts(TECHNIQUES["tsan"], module, path, by_label[label], seeds)
        print(json.dumps([asdict(trial) for trial in found]), flush=True)


if __name__ == "__main__":
    main()

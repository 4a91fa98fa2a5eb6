"""Trials under the thread sanitizer, in a process of its own because its runtime is loaded before Python.

``python -m stress.mutants.sanitized_trials MODULE`` reads lines [label, seeds] and answers each with a line.
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

from stress.mutants.build import ROOT
from stress.mutants.techniques import (
    TECHNIQUES,
    Case,
    Trial,
    attempts,
    cases,
    load,
    seeds_of,
)
from tools.sanitized import OPTIONS, runtime


def trials(module: Path, wanted: Iterable[Case], seeds: int) -> Iterator[tuple[Case, list[Trial]]]:
    """The trials of each case, in turn. Closing the iterator ends the process."""
    environment = {**os.environ, **OPTIONS["thread"], "LD_PRELOAD": runtime("thread")}
    # The children of a trial are forks of a process with one thread.
    environment["TSAN_OPTIONS"] += " die_after_fork=0 log_path=/dev/null"
    # Address space layout randomisation can collide with the sanitizer's shadow memory.
    prefix = ["setarch", "-R"] if shutil.which("setarch") else []
    command = [*prefix, sys.executable, "-m", "stress.mutants.sanitized_trials", str(module)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for case in wanted:
                process.stdin.write(json.dumps([case.label, seeds_of(case, seeds)]) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"the process of the thread sanitizer ended at {case.label}")
                yield case, [Trial(**one) for one in json.loads(line)]
        finally:
            process.kill()


def main() -> None:
    path = Path(sys.argv[1])
    module = load(path)
    known = {case.label: case for case in cases()}
    for line in sys.stdin:
        label, seeds = json.loads(line)
        made = attempts(TECHNIQUES["tsan"], module, path, known[label], seeds)
        print(json.dumps([asdict(trial) for trial in made]), flush=True)


if __name__ == "__main__":
    main()

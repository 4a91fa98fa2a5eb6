"""Trials under the thread sanitizer, in a process of its own because its runtime is loaded before Python.

``python -m stress.mutants.sanitized_trials MODULE`` reads lines [label, seed] and answers each with a line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from stress.mutants.build import ROOT
from stress.mutants.techniques import TECHNIQUES, Case, Trial, attempt, cases, load
from tools.sanitized import OPTIONS, runtime


def trials(module: Path, wanted: Iterable[tuple[Case, int]]) -> Iterator[Trial]:
    """One trial of each case and seed, in turn. Closing the iterator ends the process."""
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
            for case, seed in wanted:
                process.stdin.write(json.dumps([case.label, seed]) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(
                        f"the process of the thread sanitizer ended at {case.label}, seed {seed}"
                    )
                yield Trial(**json.loads(line))
        finally:
            process.kill()


def main() -> None:
    path = Path(sys.argv[1])
    module = load(path)
    known = {case.label: case for case in cases()}
    for line in sys.stdin:
        label, seed = json.loads(line)
        trial = attempt(TECHNIQUES["tsan"], module, path, known[label], seed)
        print(json.dumps(trial.to_data()), flush=True)


if __name__ == "__main__":
    main()

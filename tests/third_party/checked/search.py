"""Looks for a failure of one subject of a checked module: ``python search.py MODULE SUBJECT
[MODE]``.

Exit codes: 0 no failure was found, 1 a failure, 3 nothing was exercised.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pulsar_ml.harness import Program, explore, load_checked, shrink

EXIT_CODES = {"clean": 0, "violation": 1, "nothing_exercised": 3}
PROGRAMS = 4


def main(module: str, name: str, mode: str = "c11") -> int:
    subject = load_checked(Path(module)).SUBJECTS[name]
    verdicts = set()
    executions = 0
    for seed in range(PROGRAMS):
        program = Program.generate(subject, seed, threads=2, operations=4, noise=False)
        done = explore(subject, program, executions=5_000, seed=seed, mode=mode)
        executions += done.executions
        verdicts.add(done.verdict)
        if done.failure is not None:
            print(shrink(done.failure, subject).describe(subject))
            return EXIT_CODES["violation"]
    verdict = "clean" if "clean" in verdicts else "nothing_exercised"
    print(f"{name}: {verdict} after {executions} executions in mode {mode}")
    return EXIT_CODES[verdict]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

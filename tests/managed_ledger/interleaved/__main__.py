"""Explores all programs and mutants, and prints a line for each:
``python -m tests.managed_ledger.interleaved [EXECUTIONS]``."""

from __future__ import annotations

import argparse
import sys

from tests.managed_ledger.interleaved.exploring import explore, hunt
from tests.managed_ledger.interleaved.mutants import MUTANTS
from tests.managed_ledger.interleaved.programs import PROGRAMS

EXECUTIONS = 1_000  # of each program


def main(executions: int) -> int:
    """Return 1 when a program fails or a mutant is not found."""
    wrong = 0
    for program in PROGRAMS:
        done = explore(program, executions=executions)
        wrong += done.verdict != "clean"
        print(f"{program.__name__:40} {done.executions:7,} executions: {done.verdict}", flush=True)
    for mutant in MUTANTS:
        done = hunt(mutant)
        wrong += done.failure is None
        found = f"found at execution {done.executions:,}" if done.failure else "not found"
        print(f"{mutant.name:60} {found} of {mutant.program.__name__}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("executions", nargs="?", type=int, default=EXECUTIONS)
    sys.exit(main(parser.parse_args().executions))

"""``python -m tests.functions.bugs``: a row for each of the twenty programs."""

from __future__ import annotations

import sys

from pulsar_ml.harness.functions.check import EXECUTIONS
from tests.functions.bugs.searched import BUILDABLE, HEAD, PROGRAMS, search_program


def main() -> int:
    """Print the table; the exit code is 1 unless each bug is found by each seed, and no other."""
    chosen = sys.argv[1:] or BUILDABLE
    if unknown := [name for name in chosen if name not in PROGRAMS]:
        print(f"there is no program {unknown[0]!r}; there are: {', '.join(PROGRAMS)}")
        return 2
    print("\n".join(HEAD))
    right = True
    for name in chosen:
        found = search_program(name, EXECUTIONS)
        right = right and found.is_right
        print(found.describe(), flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

"""``python -m stress.mutants``: builds the module with all mutants and prints its path."""

from __future__ import annotations

import sys

from stress.mutants.build import AnchorError, build
from stress.mutants.catalogue import CATALOGUE


def main() -> int:
    if len(sys.argv) > 1:
        print(__doc__)
        for mutant in CATALOGUE:
            print(f"  {mutant.id}  {mutant.title} ({mutant.origin}); suite {mutant.suite}")
        return 0 if sys.argv[1] in {"-h", "--help"} else 2
    try:
        print(build())
    except (AnchorError, RuntimeError) as error:
        print(f"Failed: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())

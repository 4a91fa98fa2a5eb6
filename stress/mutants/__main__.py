"""Builds the module with all mutants and prints its path.

    python -m stress.mutants                       for real threads
    python -m stress.mutants --checked             for the engine
    python -m stress.mutants --engine [MUTANT]...  the engine hunts mutants; a table in Markdown
    python -m stress.mutants --faults [SUITE]...   automatic mutants (default: of all suites)

Automatic mutants are made by the engine: each atomic of the structures one step weaker, each fence
dropped, each lock ignored. Their results are in stress/mutants/data/faults.csv; results of today's
sources are not made again, and with --missing neither are those of older sources. A fault is hunted
in all suites that execute it; a SUITE limits the run to the faults that it executes. Exit codes: 0
done; 1 a fault was not noticed and has no reason; 2 usage error; 4 failed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stress.mutants.build import AnchorError, build
from stress.mutants.catalogue import CATALOGUE


def print_hunts(ids: Sequence[str]) -> int:
    """Lets the engine hunt these mutants (default: all that have a budget) and prints a table."""
    from stress.mutants.hunting import HUNTED, hunt_table

    offered = {mutant.id: mutant for mutant in HUNTED}
    if unknown := [name for name in ids if name not in offered]:
        text = f"the engine has no budget for {', '.join(unknown)}; it has: {', '.join(offered)}"
        print(text, file=sys.stderr)
        return 2
    for line in hunt_table([offered[name] for name in ids or offered]):
        print(line, end="", flush=True)
    return 0


def print_help() -> None:
    print(__doc__)
    for mutant in CATALOGUE:
        print(f"  {mutant.id}  {mutant.title} ({mutant.origin}); suite {mutant.suite}")


def main() -> int:
    arguments = sys.argv[1:]
    names = [argument for argument in arguments if not argument.startswith("-")]
    try:
        if "--engine" in arguments:
            return print_hunts(names)
        if "--faults" in arguments:
            from stress.mutants.faults.run import run_faults

            return run_faults(names, missing="--missing" in arguments)
        if arguments in ([], ["--checked"]):
            print(build(checked=bool(arguments)))
            return 0
    except (AnchorError, RuntimeError) as error:
        print(f"Failed: {error}", file=sys.stderr)
        return 4
    print_help()
    return 0 if arguments[0] in {"-h", "--help"} else 2


if __name__ == "__main__":
    sys.exit(main())

"""``python -m stress.mutants``: builds the module with all mutants and prints its path.

With ``--engine [MUTANT]...`` it builds the checked module instead, lets the engine hunt the mutants that
were made for it, and prints a table in Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stress.mutants.build import AnchorError, build
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.hunted import BUDGETS


def table(mutants: Sequence[Mutant]) -> None:
    from stress.mutants.engine import find, size

    print(
        "| mutant | mistake | suite | mode | executions to the first failure, median | reported as | "
        "threads | operations | preemptions | stale reads |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for mutant in mutants:
        found = find(mutant, budget=BUDGETS[mutant.id])
        middle = "not found" if found.median is None else f"{found.median:,.0f}"
        cells = ["-"] * 5
        if found.smallest is not None:
            measures = size(found.smallest)
            cells = [
                found.smallest.rule or found.smallest.kind,
                *(str(measures[key]) for key in ("threads", "operations", "preemptions", "stale reads")),
            ]
        line = (mutant.id, mutant.title, mutant.suite, found.mode, middle, *cells)
        print(f"| {' | '.join(line)} |")


def main() -> int:
    known = {mutant.id: mutant for mutant in CATALOGUE}
    arguments = sys.argv[1:]
    try:
        if "--engine" in arguments:
            ids = [argument for argument in arguments if argument != "--engine"] or list(BUDGETS)
            if unknown := [name for name in ids if name not in BUDGETS]:
                offered = ", ".join(BUDGETS)
                print(
                    f"the engine has no budget for {', '.join(unknown)}; it has: {offered}", file=sys.stderr
                )
                return 2
            table([known[name] for name in ids])
        elif arguments == ["--checked"]:
            print(build(checked=True))
        elif arguments:
            print(__doc__)
            for mutant in CATALOGUE:
                print(f"  {mutant.id}  {mutant.title} ({mutant.origin}); suite {mutant.suite}")
            return 0 if arguments[0] in {"-h", "--help"} else 2
        else:
            print(build())
    except (AnchorError, RuntimeError) as error:
        print(f"Failed: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m stress.mutants``: builds the module with all mutants and prints its path.

With ``--engine [MUTANT]...`` it builds the checked module instead, lets the engine hunt the mutants that
were made for it, and prints a table in Markdown.

With ``--faults [SUITE]...`` (default: all) each atomic of the structures that the suites make is weakened by
one step, each fence left out and each lock ignored, at the engine; what came of it goes into
stress/mutants/data/faults.csv. What is there already of the same sources is not made again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stress.mutants.build import AnchorError, build
from stress.mutants.catalogue import CATALOGUE, Mutant


def table(mutants: Sequence[Mutant]) -> None:
    from stress.mutants.engine import find, size

    print(
        "| mutant | mistake | suite | mode | executions to the first failure, median | reported as | "
        "threads | operations | preemptions | stale reads |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for mutant in mutants:
        found = find(mutant)
        middle = "not found" if found.median is None else f"{found.median:,.0f}"
        cells = ["-"] * 5
        if found.smallest is not None:
            measures = size(found.smallest)
            cells = [
                found.smallest.rule or found.smallest.kind,
                *(
                    str(measures[key])
                    for key in ("threads", "operations", "preemptions", "stale reads")
                ),
            ]
        line = (mutant.id, mutant.title, mutant.suite, found.mode, middle, *cells)
        print(f"| {' | '.join(line)} |")


def faults(names: Sequence[str]) -> int:
    from pulsar_ml.campaign.trial.trial import CHECKED, load_native
    from pulsar_ml.suites.registry import SUITES
    from stress.mutants import unlocked, weakened
    from stress.mutants.faults import NOTICED, read, unexplained, write

    if unknown := [name for name in names if name not in SUITES]:
        print(
            f"there is no suite {', '.join(unknown)}; there are: {', '.join(SUITES)}",
            file=sys.stderr,
        )
        return 2
    suites = [SUITES[name] for name in names or SUITES]
    before = {one.key: one for one in read(NOTICED)}
    after = dict(before) if names else {}
    for module, every, hunt in (
        (load_native(CHECKED), weakened.faults, weakened.hunt),
        (load_native(str(build(checked=True))), unlocked.faults, unlocked.hunt),
    ):
        for fault in every(module, suites):
            known = before.get(fault.key)
            if known is None or known.source != fault.source:
                print(" ".join(fault.key), file=sys.stderr)
                known = hunt(module, fault, suites)
            after[known.key] = known
            write(NOTICED, list({**before, **after}.values()))
    write(NOTICED, list(after.values()))
    left = unexplained(list(after.values()))
    for one in left:
        print(f"not noticed, not explained: {' '.join(one.key)}", file=sys.stderr)
    return 1 if left else 0


def main() -> int:
    known = {mutant.id: mutant for mutant in CATALOGUE}
    arguments = sys.argv[1:]
    try:
        if "--engine" in arguments:
            hunted = [mutant.id for mutant in CATALOGUE if mutant.within]
            ids = [argument for argument in arguments if argument != "--engine"] or hunted
            if unknown := [name for name in ids if name not in hunted]:
                offered = ", ".join(hunted)
                print(
                    f"the engine has no budget for {', '.join(unknown)}; it has: {offered}",
                    file=sys.stderr,
                )
                return 2
            table([known[name] for name in ids])
        elif "--faults" in arguments:
            return faults([argument for argument in arguments if argument != "--faults"])
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

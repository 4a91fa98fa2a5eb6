"""The results of automatic mutants as tables, and as a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from statistics import median
from types import MappingProxyType

from stress.mutants.automatic.hunting import (
    AGAIN,
    ALLOCATION,
    ALLOCATIONS,
    EACH,
    EACH_LARGE,
    ENGINE,
    EXECUTIONS,
    FAULT,
    FAULTY_EXECUTIONS,
    LARGE,
    LINEAR,
    LONGER,
    MODEL,
    NEAREST,
    ONE,
    PROGRAMS,
    SINGLE,
    SINGLE_FAULTY,
    SINGLE_OPERATIONS,
    THREADS,
    TIMES_FAULTY,
    TRIALS,
)
from stress.mutants.automatic.operators import OPERATORS
from stress.mutants.automatic.points import points
from stress.mutants.automatic.results import EQUIVALENT, HOLE, Key, Reading, Result, score
from stress.mutants.markdown import head, row

HEAD = """\
# Automatic mutants

Automatic mutants are small mistakes that a program puts into each line of the core. They measure
the detectors without the eye of those who wrote the [catalogue](mutants.md). The operators below
make {total:,} mutants of `pulsar_ml/structures` and `pulsar_ml/sync`. One module holds all of them
behind a switch. The hunts are blind: every program is one that its suite generates.

```
make automatic-mutants                        # a sample of 100, its score and this page
python -m stress.mutants.automatic --sample 300 --seed 2
python -m stress.mutants.automatic --place range_cache.pxd --sample 1000
python -m stress.mutants.automatic --list     # the names of all
python -m stress.mutants.automatic --core     # the unchanged core must be silent
```

A result is in `stress/mutants/data/automatic.csv` as soon as it is made, so an interrupted run
continues where it stopped. A mutant's name is its file, line and operator.

## Score

{score}.

The mutants are a random sample of all. An equivalent mutant does not count, and a survivor that
nobody has read counts as not found. The programs were improved with the survivors of this sample,
so its score is too high for the whole core; the [held-out sample](#held-out) has none of that. A
sample loses the mutants whose code is gone.

"""

# By seed. The last sample is the one whose score holds for the whole core.
HELD_OUT_TEXT = {
    2: """
## Second sample

{score}.

A random sample of seed 2, hunted without the stage on real threads. When it was hunted first,
nothing had been tuned to it: 79 of 94 were found (84.0%; 95 % between 75.3% and 90.1%). Programs
have been improved with its survivors since then, so its score is too high now.

""",
    3: """
## Third sample

{score}.

A random sample of seed 3, hunted without the stage on real threads. When it was hunted first,
nothing had been tuned to it: 67 of 77 were found (87.0%; 95 % between 77.7% and 92.8%). Operations,
checks and programs have been improved with its survivors since then, so its score is too high now.

""",
    4: """
## Fourth sample

{score}.

A random sample of seed 4, hunted without the stage on real threads. When it was hunted first,
nothing had been tuned to it: 78 of 93 were found (83.9%; 95 % between 75.1% and 90.0%). Operations,
checks and programs have been improved with its survivors since then, so its score is too high now.

""",
    5: """
## Held out

{score}.

A random sample of seed 5, drawn after the operations, checks and programs had been improved with
the survivors of the four samples above; nothing was tuned to it. The interval (Wilson's, 95 %)
holds for the whole core. Real threads found one of them that nothing else found. Eleven are of the
samples above as well; of the others 83 of 87 were found (95.4%).

""",
}
WHOSE = {
    2: " of the second sample",
    3: " of the third sample",
    4: " of the fourth sample",
    5: " of the held-out sample",
}

TECHNIQUES = {
    ONE: f"{SINGLE} programs of one thread with {SINGLE_OPERATIONS} operations, under the engine: "
    f"every invariant, leaks, memory that was freed. Behind the next three, {LARGE} larger programs "
    "of one thread, of the suite's own sizes.",
    MODEL: "The same programs: answers that the suite's sequential model does not give.",
    ALLOCATION: f"{EACH} programs of one thread, and {EACH_LARGE} larger ones behind the larger "
    f"programs, run with each of their allocations failing in turn, {ALLOCATIONS} of the world and "
    f"{ALLOCATIONS} of the calls at most: refused, as the model says, and nothing leaks.",
    FAULT: f"{SINGLE_FAULTY} programs of one thread, {TIMES_FAULTY} executions each, in which an "
    f"allocation may fail; in the end the programs of several threads, {FAULTY_EXECUTIONS} "
    "executions each.",
    ENGINE: f"{PROGRAMS} small programs of several threads in mode c11, {EXECUTIONS} executions "
    "each: invariants, data races, leaks, deadlocks, crashes.",
    LINEAR: "The same executions: answers that no order of the calls explains by the model.",
    THREADS: f"{TRIALS} long programs of the nearest suite with one thread, and {TRIALS} on real threads, "
    "for what survived all else.",
}


def page(
    results: Iterable[Result],
    known: Mapping[Key, Reading],
    held_out: Mapping[int, Iterable[Result]] = MappingProxyType({}),
) -> str:
    """The page of these results, and of samples that nothing was tuned to, by their seeds."""
    every = list(results)
    text = HEAD.format(total=len(points()), score=score(every, known))
    text += operators(every, known) + techniques(every) + structures(every, known)
    text += survivors(every, known)
    for seed, some in held_out.items():
        other = list(some)
        text += HELD_OUT_TEXT[seed].format(score=score(other, known)).rstrip("\n") + "\n"
        text += survivors(other, known, WHOSE[seed])
    return text


def tables(results: Collection[Result], known: Mapping[Key, Reading]) -> str:
    """The tables by operator, technique and structure."""
    return operators(results, known) + techniques(results) + structures(results, known)


def operators(results: Collection[Result], known: Mapping[Key, Reading]) -> str:
    text = "## Operators\n\n" + head("operator", "mistake", *COUNTS)
    for name, sentence in OPERATORS.items():
        text += row(name, sentence, *counts(results, known, lambda one: one.operator, name))
    return text


def structures(results: Collection[Result], known: Mapping[Key, Reading]) -> str:
    text = "\n## Structures\n\n" + head("structure", *COUNTS)
    for name in sorted({one.structure for one in results}):
        text += row(name, *counts(results, known, lambda one: one.structure, name))
    return text


COUNTS = ("tried", "found", "equivalent", "holes", "not read")


def counts(
    results: Iterable[Result],
    known: Mapping[Key, Reading],
    of: Callable[[Result], str],
    name: str,
) -> tuple[int, ...]:
    some = [one for one in results if of(one) == name]
    kinds = [known[one.key].kind if one.key in known else "" for one in some if not one.found]
    return (
        len(some),
        sum(one.found for one in some),
        kinds.count(EQUIVALENT),
        kinds.count(HOLE),
        kinds.count(""),
    )


def techniques(results: Collection[Result]) -> str:
    """The first finders. The suites that use a structure take turns, its own suite first."""
    text = "\n## First finder\n\nThe techniques of one suite are tried in this order, then those of"
    text += " the next suite that uses the\nstructure. "
    text += f"Suites after the nearest {NEAREST} have a third of the programs. In the end "
    text += f"{AGAIN} of them, the\nnearest, gets {LONGER} times as many programs again.\n\n"
    text += head("technique", "looks for", "first to find", "executions, median", "seconds, median")
    for name, sentence in TECHNIQUES.items():
        some = [one for one in results if one.technique == name]
        executions = f"{median(one.executions for one in some):,.0f}" if some else "-"
        seconds = f"{median(float(one.seconds) for one in some):.2f}" if some else "-"
        text += row(name, sentence, len(some), executions, seconds)
    return text


def survivors(results: Collection[Result], known: Mapping[Key, Reading], whose: str = "") -> str:
    """Holes, equivalent mutants, and survivors that nobody has read."""
    text = ""
    left = [one for one in results if not one.found]
    holes = [one for one in left if one.key in known and known[one.key].kind == HOLE]
    same = [one for one in left if one.key in known and known[one.key].kind == EQUIVALENT]
    unread = [one for one in left if one.key not in known]
    for title, some, reason in (
        ("Holes", holes, "what is missing"),
        ("Equivalent", same, "why nothing changes"),
    ):
        if some:
            text += f"\n## {title}{whose}\n\n" + head("mutant", "change", "reached", reason)
            for one in some:
                text += row(one.name, code(one.change), one.reached, known[one.key].reason)
    if unread:
        text += f"\n## Survivors{whose}, not read\n\n" + head("mutant", "change", "reached", "in")
        for one in unread:
            text += row(one.name, code(one.change), one.reached, one.function)
    return text


def code(text: str) -> str:
    return f"`{text}`"

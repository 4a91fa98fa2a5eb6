"""How often the hints of ``pulsar-ml explain`` name the place that a mutant changed.

    python -m stress.mutants.hints [MUTANT]...    results (default: of all), and the page
    python -m stress.mutants.hints --page-only    the page alone, from the results that are kept

The engine hunts each mutant whose mistake is a memory order or a lock, shrinks the failure and
tries changes. Results are in stress/mutants/data/hints.csv, the page is docs/hints.md.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import find_subject
from pulsar_ml.harness.causes.changes import CallLock, Fence, Order
from pulsar_ml.harness.causes.hints import Hint, Hints, hints, steps_of
from pulsar_ml.harness.causes.trace import place_of
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.search.symbols import is_within
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT, find_anchor, function_at
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.csv_rows import read_rows, write_rows
from stress.mutants.hunting import hunt, mutants
from stress.mutants.markdown import head, row

DATA = Path(__file__).parent / "data" / "hints.csv"
PAGE = ROOT / "docs" / "hints.md"
ORDER, LOCK = "order", "lock"
TARGETS = {ORDER: 0.9, LOCK: 0.8}
BUDGET = 100_000  # executions of a hunt
SHRINKING = 50_000
FIRST = 2  # hints that count
QUICK = 10.0  # seconds

# The mutants whose mistake is a memory order or a fence, and those without a lock, a validation or
# an indivisible step that the true core has.
CAUSES = {
    ORDER: "M11 M11b M14b M01 M02 M02b M06 Q01 Q02 EX-adopted EX-followed EX-known M09b M09c M09e "
    "CM-marker CM-look AK10 AK11",
    LOCK: "M13 M37 M37b B02 H31B H18a H20 C02 C05 H08 AK12 AK14 M42 RD4 A23 AI1 EP-settings DD01 "
    "P05 M54",
}

HEAD = """\
# Hints at causes

`pulsar-ml explain FAILURE` tries changes of the code under test and prints those that end a
failure: stronger orders, fences, and locks. This page tells how often the first two hints name the
function that a [mutant](mutants.md) changed. `python -m stress.mutants.hints` makes the results and
writes this page.

The engine hunts each mutant, shrinks the failure and tries the changes on its program. A hint is
right if it is of the mutant's kind, an order or a lock, and one of its places is in the changed
function or in a function that was called there, or its lock is held by an operation that ran the
changed function. A hint is tried with one program and proves nothing about others.

A change ends a failure if no execution fails with it: of all that the program has, or of ten times
as many as the unchanged program made until it failed. Behind the samples and searches `explain`
makes at most 300,000 executions for that; it says how many changes it could not judge with them.
In code of Python, locks are the only changes.

`explain` keeps what it found beside the failure, as `NAME.hints`: the sentences on the cause and
the hints, with the digest of the failure. The file of another failure is not read.

"""


@dataclass(frozen=True, slots=True)
class Result:
    """The hints of one mutant.

    Attributes:
        mutant, cause: its id; "order" or "lock".
        function: the function that it changes.
        first, second: the first two hints; "" for none.
        right: the number of the first right hint; 0: neither is.
        note: why there is no hint, or "".
        milliseconds: from the replay to the hints.
    """

    mutant: str
    cause: str
    function: str
    first: str
    second: str
    right: int
    note: str
    milliseconds: int


def changed_function(mutant: Mutant) -> str:
    source = (ROOT / "pulsar_ml" / mutant.file).read_text()
    return function_at(source, find_anchor(source, mutant).start())


def result_of(mutant: Mutant, cause: str) -> Result:
    """Hunt the mutant, shrink its failure, and look for hints."""
    module = mutants()
    suite = SUITES[mutant.suite]
    subject = find_subject(module, suite)
    judge = judge_of(suite.model)
    function = changed_function(mutant)
    module.select_mutant(mutant.id)
    try:
        found = hunt(
            module, mutant, seed=0, mode=mutant.mode or "c11", budget=mutant.within or BUDGET
        ).failure
        if found is None:
            return Result(mutant.id, cause, function, "", "", 0, "the hunt did not find it", 0)
        failure = shrink(found, subject, budget=SHRINKING, judge=judge)
        began = time.perf_counter()
        done = hints(failure, subject, judge)
        milliseconds = round(1000 * (time.perf_counter() - began))
        texts = [str(hint).partition(": none of")[0] for hint in done.found[:FIRST]]
        first, second = (*texts, "", "")[:FIRST]
        right = right_hint(done, cause, function, failure, subject)
    finally:
        module.select_mutant(None)
    return Result(mutant.id, cause, function, first, second, right, done.why, milliseconds)


def right_hint(done: Hints, cause: str, function: str, failure: Failure, subject: Subject) -> int:
    """The number of the first of two hints of this cause that names the function; 0: none does."""
    trace, _ = steps_of(failure, subject)
    events = [
        event for each in trace.every for event in each if event["pc"] and event["thread"] >= 0
    ]
    within = re.compile(rf" {re.escape(function)}$")
    inside = [
        event for event in events if any(is_within(int(pc), within) for pc in event["frames"])
    ]
    for number, hint in enumerate(done.found[:FIRST], 1):
        if {isinstance(change, Order | Fence) for change in hint.changes} != {cause == ORDER}:
            continue
        if {place_of(event) for event in inside} & set(hint.places):
            return number
        if locked(hint, failure) & {(event["thread"], event["call"]) for event in inside}:
            return number
    return 0


def locked(hint: Hint, failure: Failure) -> set[tuple[int, int]]:
    """The calls, as thread and number, that hold the hint's lock from beginning to end."""
    codes = {
        code for change in hint.changes if isinstance(change, CallLock) for code in change.codes
    }
    return {
        (thread, number)
        for thread, calls in enumerate(Program.from_json(failure.program).threads)
        for number, call in enumerate(calls)
        if int(call["code"]) in codes
    }


def page(results: Iterable[Result]) -> str:
    known = {result.mutant: result for result in results}
    text = HEAD
    for cause, ids in CAUSES.items():
        own = [known[name] for name in ids.split() if name in known]
        right = sum(result.right > 0 for result in own)
        quick = sum(result.milliseconds < 1000 * QUICK for result in own)
        text += (
            f"## Mutants of {cause}s\n\n{right} of {len(own)} right among the first two hints "
            f"({right / max(len(own), 1):.0%}; the aim is {TARGETS[cause]:.0%}); {quick} of "
            f"{len(own)} within {QUICK:.0f} seconds.\n\n"
        )
        text += head("mutant", "changed function", "first hint", "second hint", "right", "seconds")
        for one in own:
            first = one.first or f"none: {one.note}"
            text += row(
                one.mutant, f"`{one.function}`", first, one.second or "-", one.right or "no",
                f"{one.milliseconds / 1000:.1f}",
            )  # fmt: skip
        text += "\n"
    return text.rstrip("\n") + "\n"


def main(arguments: Sequence[str]) -> int:
    if set(arguments) & {"-h", "--help"}:
        print(__doc__)
        return 0
    causes = {name: cause for cause, ids in CAUSES.items() for name in ids.split()}
    results = {one.mutant: one for one in read_rows(DATA, Result)} if DATA.exists() else {}
    if list(arguments) != ["--page-only"]:
        if unknown := [name for name in arguments if name not in causes]:
            known = ", ".join(causes)
            print(
                f"no hints are measured for {', '.join(unknown)}; known: {known}", file=sys.stderr
            )
            return 2
        catalogue = {mutant.id: mutant for mutant in CATALOGUE}
        for name in arguments or causes:
            one = result_of(catalogue[name], causes[name])
            print(f"{name}: {one.first or one.note} (right: {one.right or 'no'})", flush=True)
            results[name] = one
            write_rows(DATA, Result, (results[each] for each in causes if each in results))
    PAGE.write_text(page(results.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The kill table as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from stress.mutants.left_out import LEFT_OUT
from stress.mutants.results import Results
from stress.mutants.techniques import CORE, Case, Technique, Trial

HEAD = """\
# Kill table

What each technique finds of the mutants (see [mutants](mutants.md)), and that it is silent on the true core.
Made by `make kill-table`; each cell counts the seeds that found the mutant, of {seeds} or as many as it says.
Budgets are counted, not timed, so the same table comes out on other machines, but for real threads, whose
schedules are the machine's, and for times.

| technique | what it does | budget of a seed | seeds |
| --- | --- | --- | --- |
"""

TAIL = (
    "\nA process that crashed counts as found, and so does one that did not end within the limits: "
    "{limits}.\n"
)

SIZES = ("threads", "operations", "preemptions", "stale reads")


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n"


def head(*cells: str) -> str:
    return row(*cells) + row(*("---" for _ in cells))


def survivors(results: Results, techniques: Sequence[Technique], wanted: Sequence[Case]) -> list[Case]:
    """Mutants that were tried and that no technique found, but for those known to be equivalent."""
    return [
        case
        for case in wanted
        if case.selected and not case.mutant.equivalent and unseen(results, techniques, case)
    ]


def unseen(results: Results, techniques: Sequence[Technique], case: Case) -> bool:
    trials = [trial for technique in techniques for trial in results.of(case, technique)]
    return bool(trials) and not any(trial.found for trial in trials)


def blamed(results: Results, techniques: Sequence[Technique], wanted: Sequence[Case]) -> list[Trial]:
    """Trials in which the true core, or an equivalent mutant, was reported."""
    return [
        trial
        for case in wanted
        if case.selected is None or case.mutant.equivalent
        for technique in techniques
        for trial in results.of(case, technique)
        if trial.found
    ]


def page(
    results: Results,
    techniques: Sequence[Technique],
    wanted: Sequence[Case],
    seeds: int,
    limits: str = (
        "4 s of the processor or 20 s of the clock on real threads; 5 s or 20 s for one of the engine"
    ),
) -> str:
    mutants = [case for case in wanted if case.selected]
    text = HEAD.format(seeds=seeds)
    for one in techniques:
        text += row(one.title, one.what, f"{one.budget:,} {one.unit}", min(seeds, one.seeds))
    text += TAIL.format(limits=limits)
    text += overview(results, techniques, mutants)
    text += exceptions(results, techniques, wanted)
    text += true_core(results, techniques, [case for case in wanted if case.selected is None])
    for one in techniques:
        text += details(results, one, mutants)
    return text


def found(trials: Sequence[Trial]) -> str:
    if not trials:
        return "-"
    return f"{sum(trial.found for trial in trials)}/{len(trials)}"


def overview(results: Results, techniques: Sequence[Technique], mutants: Sequence[Case]) -> str:
    text = "\n## Mutants\n\n"
    text += head("mutant", "mistake", "suite", "breaks", *(one.title for one in techniques))
    for case in mutants:
        cells = [found(results.of(case, one)) for one in techniques]
        text += row(case.label, case.mutant.title, case.mutant.suite, case.mutant.breaks, *cells)
    text += "\n`-`: the technique does not apply: the suite has no sequential model.\n"
    sums = []
    for one in techniques:
        tried = [trials for case in mutants if (trials := results.of(case, one))]
        sums.append((one.title, sum(any(trial.found for trial in trials) for trials in tried),
                     sum(all(trial.found for trial in trials) for trials in tried), len(tried)))  # fmt: skip
    text += "\n" + head("technique", "mutants found by some seed", "by every seed", "mutants tried")
    return text + "".join(row(*line) for line in sums)


def exceptions(results: Results, techniques: Sequence[Technique], wanted: Sequence[Case]) -> str:
    text = ""
    if left := survivors(results, techniques, wanted):
        text += "\n## Survivors\n\nNo technique found these within its budget.\n\n"
        text += head("mutant", "mistake", "suite")
        text += "".join(row(case.label, case.mutant.title, case.mutant.suite) for case in left)
    text += "\n## Not in the catalogue\n\n" + head("bug", "why")
    text += "".join(row(*line) for line in LEFT_OUT.items())
    if same := [case for case in wanted if case.selected and case.mutant.equivalent]:
        text += "\n## Equivalent mutants\n\n" + head("mutant", "change", "why nothing can tell")
        text += "".join(row(case.label, case.mutant.title, case.mutant.equivalent) for case in same)
    return text


def true_core(results: Results, techniques: Sequence[Technique], wanted: Sequence[Case]) -> str:
    if not wanted:
        return ""
    text = "\n## The true core\n\nSeeds that reported something; programs or executions that were made.\n\n"
    text += head("programs of", *(one.title for one in techniques))
    for case in wanted:
        cells = []
        for one in techniques:
            trials = results.of(case, one)
            cells.append(f"{found(trials)}; {sum(trial.made for trial in trials):,}" if trials else "-")
        text += row(case.label.removeprefix(f"{CORE}, ").removeprefix("programs of "), *cells)
    return text


def details(results: Results, technique: Technique, mutants: Sequence[Case]) -> str:
    lines = ""
    for case in mutants:
        hits = [trial for trial in results.of(case, technique) if trial.found]
        if hits:
            lines += detail(case, technique, hits, len(results.of(case, technique)))
    if not lines:
        return ""
    text = f"\n## {technique.title.capitalize()}\n\nMedians of the seeds that found it.\n\n"
    sizes = ["size after shrinking"] if technique.built == "engine" else []
    return text + head("mutant", "found", technique.unit, "seconds", "reported as", *sizes) + lines


def detail(case: Case, technique: Technique, hits: Sequence[Trial], seeds: int) -> str:
    counts = Counter(trial.verdict for trial in hits)
    verdicts = ", ".join(f"{verdict} ({count})" for verdict, count in counts.most_common(3))
    cells = [
        case.label,
        f"{len(hits)}/{seeds}",
        f"{median(trial.made for trial in hits):,.0f}",
        f"{median(trial.seconds for trial in hits):.3f}",
        verdicts,
    ]
    if technique.built == "engine":
        sizes = [trial.size for trial in hits if trial.size is not None]
        cells.append(size_in_words(min(sizes, key=lambda size: sum(size.values()))) if sizes else "-")
    return row(*cells)


def size_in_words(size: Mapping[str, int]) -> str:
    return ", ".join(f"{size[name]} {name}" for name in SIZES if size[name] or name in SIZES[:2])

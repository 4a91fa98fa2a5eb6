"""``pulsar-ml explore``: suites under the engine, where one seed decides every switch and fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from pulsar_ml.campaign.local.exploring import (
    SuiteExploration,
    counts_of,
    explore_suite,
    keep_failure,
)
from pulsar_ml.campaign.local.failures import checked_subject, replay_failure
from pulsar_ml.campaign.local.results import verdict
from pulsar_ml.campaign.local.run_writer import exploration_writer, with_failure
from pulsar_ml.campaign.local.slices import MOST_SEEDS, SuiteSlices, budget_words
from pulsar_ml.campaign.local.suites import choose_suites, load_suites
from pulsar_ml.campaign.store.baseline import baseline_of
from pulsar_ml.campaign.trial.guidance import EXECUTIONS, SEEDS
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import CHECKED, LEAK
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.output import print_json
from pulsar_ml.errors import UsageError
from pulsar_ml.exit_codes import INTERRUPTED, NOTHING_EXERCISED, SEARCH, ExitCode, worst
from pulsar_ml.harness.budgets.rounds import spend
from pulsar_ml.harness.engine import REUSE
from pulsar_ml.harness.testing.known import baseline_data, today
from pulsar_ml.terminal.command_line import command_line, short_path, suites_words
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.trust import trust_words


@new_command(
    "explore",
    examples=(
        "explore mpsc_queue --seeds 500",
        "explore refcount --strategy preemptions --bound 3 --mode sc",
        "explore all --seconds 3600 --fault no_memory --seed 1000",
        "explore mine --suites my_suites --module ./mine.so",
    ),
    exit_codes=SEARCH,
)
@click.argument("suite")
@shared.suites()
@shared.module(CHECKED)
@shared.mutant()
@shared.seed()
@shared.seeds(None, f"[default: {SEEDS}; with --seconds: no limit]")
@shared.seconds("Begin no more programs after this time, of which each suite gets an equal part.")
@shared.budget("suites")
@shared.threads(63)
@shared.operations
@shared.executions(EXECUTIONS)
@shared.strategy("portfolio")
@shared.bounds(always=True)
@option(
    "--lock-free/--may-block",
    default=False,
    show_default=True,
    group=shared.SEARCH,
    help="Hold back a thread of an execution, and report when the others cannot end without it.",
)
@option(
    "--preemptions",
    type=click.IntRange(min=0),
    metavar="N",
    group=shared.SEARCH,
    help="With --strategy exhaust or reduce: every class that so many preemptions reach.  "
    "[default: any number]",
)
@option(
    "--symmetry",
    is_flag=True,
    group=shared.SEARCH,
    help="With --strategy exhaust or reduce: threads of equal calls begin in the order of their "
    "numbers. For code that does not ask for its thread's number.",
)
@option(
    "--guided/--unguided",
    default=True,
    show_default=True,
    group=shared.SEARCH,
    help="Make every other program from earlier ones that showed something new, and end a program "
    "when its executions are known. With --strategy portfolio, search each drawn program briefly, "
    "too. Strategies that search are never guided.",
)
@shared.mode
@shared.faults()
@option(
    "--reuse",
    type=click.Choice(tuple(REUSE)),
    default="mixed",
    show_default=True,
    group=shared.SEARCH,
    help="When freed memory is handed out again.",
)
@option(
    "--races/--no-races",
    default=True,
    show_default=True,
    group=shared.SEARCH,
    help="Report data races. Without, only results count, not declared memory orders.",
)
@shared.suppress
@shared.ignore
@option(
    "--answers/--no-answers",
    default=True,
    show_default=True,
    group=shared.SEARCH,
    help="Compare answers with the suite's model, where it has one.",
)
@shared.sandbox()
@shared.records
@shared.run_directory
@shared.baseline("an earlier results directory")
@shared.as_json
def command(
    suite: str,
    suites: str,
    records: Path | None,
    out: Path | None,
    as_json: bool,
    sandbox: bool,
    patience: float,
    seeds: int | None,
    seconds: float | None,
    budget: float | None,
    ignore: tuple[str, ...],
    baseline: tuple[Path, ...],
    **options: Any,
) -> ExitCode:
    """Search the schedules of one SUITE, or of "all": small programs, many executions of each.

    The search of a suite ends with its first failure, which is made smaller and written to the
    folder of --records.
    """
    if budget is not None and (seeds or seconds):
        raise UsageError("--budget, --seeds and --seconds are budgets; give one of them")
    known = baseline_of(baseline, today()) if baseline else None
    chosen = choose_suites(load_suites(suites), (suite,))
    options["module"] = module = options["module"] or CHECKED
    options["leaks"] = LEAK not in ignore
    mutant = options["mutant"]
    limits = shared.sandbox_limits(sandbox, patience)
    interrupted = False
    subjects = {each.name: checked_subject(each.subject, module, mutant) for each in chosen}
    build_id = str(subjects[chosen[0].name].build_id)
    writer = exploration_writer(out, build_id, options, suites) if out else None
    begun: list[SuiteSlices] = []

    def report(one: SuiteSlices) -> None:
        total, judge = one.total, judge_of(one.suite.model)
        path = keep_failure(total, records, module, mutant, limits, judge)
        if writer and total.failed and total.failure:
            writer.add(with_failure(total.failed, total.failure, options))
        if not as_json:
            echo("\n".join([*total.lines(), *([f"  {one.share()}"] * (budget is not None))]))
            if path is not None and total.failure is not None:
                again = replay_failure(total.failure, subjects[total.suite], judge, limits)
                echo(total.failure.summary(again))
                steps = command_line(
                    "replay", short_path(path), *suites_words(suites), *trust_words(module)
                )
                echo(f"  written to {path}\n  step by step: {steps}")
        total.settle(known)

    seed = options.pop("seed")
    with writer or nullcontext(), ProgressDisplay() as progress:

        def slices() -> Iterator[SuiteSlices]:
            for each in chosen:
                total = SuiteExploration(each.name, options["strategy"])
                explore = partial(
                    explore_suite,
                    each,
                    total,
                    progress=progress,
                    limits=limits,
                    on_result=writer.add if writer else None,
                    baseline=known,
                    **options,
                )
                begun.append(SuiteSlices(each, total, explore, seed, report))
                yield begun[-1]

        try:
            if budget is not None:
                spend(slices(), len(chosen), budget)
            else:
                share = None if seconds is None else seconds / len(chosen)
                for one in slices():
                    one.run(seeds or (SEEDS if seconds is None else MOST_SEEDS), share)
        except KeyboardInterrupt:  # the results so far are kept and shown
            interrupted = True
        begun = [one for one in begun if one.latest or one.reported or interrupted]
        for one in begun:
            one.end()
        if writer and interrupted:
            writer.status = "interrupted"
    totals = [one.total for one in begun]
    missed = [each.name for each in chosen[len(begun) :]]
    codes = [*(total.exit_code() for total in totals), *([NOTHING_EXERCISED] * bool(missed))]
    code = INTERRUPTED if interrupted else worst(codes)
    counts = counts_of(totals)
    found = {signature for total in totals for signature in total.signatures()}
    if as_json:
        print_json(
            {
                "exit_code": code,
                **counts.as_data(),
                "warning": counts.warning(),
                "suites": [total.as_data() for total in totals],
                **({"not_run": missed} if budget is not None else {}),
                **baseline_data(found, known),
            }
        )
        return code
    if warning := counts.warning():
        echo(warning)
    idle = [total.suite for total in totals if total.exit_code() == NOTHING_EXERCISED]
    last = verdict(code, counts, [*idle, *missed], known=bool(found))
    last += f"; {known.sentence(found)}" if known else ""
    echo(last + (f"; {budget_words(budget, begun, missed)}" if budget is not None else ""))
    if writer:
        echo(writer.where())
    return code

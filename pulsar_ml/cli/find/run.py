"""``pulsar-ml run``: suites on real threads."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import click

from pulsar_ml.campaign.local.records import Records
from pulsar_ml.campaign.local.results import counts_of, print_run, run_as_data, verdict
from pulsar_ml.campaign.local.run_writer import RunWriter
from pulsar_ml.campaign.local.session import Budget, SuiteRun, run_suite
from pulsar_ml.campaign.local.suites import choose_suites, load_suites
from pulsar_ml.campaign.local.watch import LEAK_MEGABYTES, MEGABYTE
from pulsar_ml.campaign.store.baseline import baseline_of
from pulsar_ml.campaign.trial.trial import (
    LEAK,
    PRODUCT,
    TrialOptions,
    find_subject,
    load_native,
    select_mutant,
)
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.output import console, print_json
from pulsar_ml.errors import UsageError
from pulsar_ml.exit_codes import NOTHING_EXERCISED, SEARCH, ExitCode, worst
from pulsar_ml.harness.testing.known import baseline_data, today
from pulsar_ml.terminal.progress import ProgressDisplay

DEFAULT_SECONDS = 10.0


@new_command(
    "run",
    examples=(
        "run range_cache",
        "run all --seconds 300 --threads 64",
        "run entry --seeds 1000 --seed 1",
        "run mine --suites my_suites --module ./mine.so",
        "run all --seeds 200 --json > result.json",
    ),
    exit_codes=SEARCH,
)
@click.argument("suite")
@shared.suites()
@shared.module(PRODUCT)
@shared.mutant()
@shared.seed()
@shared.seeds(None, "Instead of --seconds.")
@shared.seconds(f"Stop after this time.  [default: {DEFAULT_SECONDS:g}]")
@shared.threads(64)
@shared.operations
@shared.noise
@option(
    "--failures",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    group=shared.LIMITS,
    help="Stop after so many failed programs.",
)
@option(
    "--leak-threshold",
    metavar="MB",
    type=click.FloatRange(0),
    default=LEAK_MEGABYTES,
    show_default=True,
    group=shared.LIMITS,
    help="Steady growth of resident memory that is a violation; 0 turns the check off.",
)
@shared.ignore
@shared.records
@shared.run_directory
@shared.baseline("an earlier results directory")
@shared.as_json
def command(
    suite: str,
    suites: str,
    module: str | None,
    mutant: str | None,
    seed: int,
    seeds: int | None,
    seconds: float | None,
    threads: int | None,
    operations: int | None,
    noise: bool,
    failures: int,
    leak_threshold: float,
    ignore: tuple[str, ...],
    records: Path | None,
    out: Path | None,
    baseline: tuple[Path, ...],
    as_json: bool,
) -> ExitCode:
    """Run one SUITE, or "all", on real threads within one budget.

    Each program follows from its seed; the schedule does not, so the same seeds are worth running
    again. Noise (spinning, yielding, moving to another processor) is part of the program.

    A failed program is written to the folder of --records, and the command that replays it is
    printed. After a crash of the process that folder holds running.json, the program in flight.
    """
    if seconds is not None and seeds is not None:
        raise UsageError("--seconds and --seeds are two budgets; give one of them")
    known = baseline_of(baseline, today()) if baseline else None
    chosen = choose_suites(load_suites(suites), (suite,))
    module = module or PRODUCT
    options = TrialOptions(
        threads=threads, operations=operations, noise=noise, module=module, mutant=mutant
    )
    native = load_native(module)
    select_mutant(native, mutant)
    for each in chosen:
        find_subject(native, each)
    budget = Budget(None if seeds else seconds or DEFAULT_SECONDS, seeds).share(len(chosen))
    runs: list[SuiteRun] = []
    build_id = find_subject(native, chosen[0]).build_id
    writer = RunWriter(out, options, build_id, suites) if out else None
    screen, progress = console(), ProgressDisplay()
    folder = Records(records)
    with writer or nullcontext(), closing(folder), progress:
        for each in chosen:
            one = run_suite(
                each,
                seed=seed,
                budget=budget,
                options=options,
                records=folder,
                progress=progress,
                most_failures=failures,
                leak_threshold=0 if LEAK in ignore else int(leak_threshold * MEGABYTE),
                on_result=writer.add if writer else lambda result: None,
                baseline=known,
            )
            runs.append(one)
            if not as_json:
                print_run(screen, one, suites)
            if one.interrupted:
                if writer:
                    writer.status = "interrupted"
                break
    code = worst(one.exit_code() for one in runs)
    counts = counts_of(runs)
    found = {signature for one in runs for signature in one.signatures}
    if as_json:
        data = [run_as_data(one, suites) for one in runs]
        print_json(
            {
                "exit_code": code,
                **counts.as_data(),
                "warning": counts.warning(),
                "suites": data,
                **baseline_data(found, known),
            }
        )
    else:
        if warning := counts.warning():
            screen.print(f"\n{warning}", soft_wrap=True, markup=False)
        idle = [one.suite for one in runs if one.exit_code() == NOTHING_EXERCISED]
        last = verdict(code, counts, idle, known=bool(found))
        last += f"; {known.sentence(found)}" if known else ""
        screen.print(f"\n{last}", soft_wrap=True, highlight=False, markup=False)
        if writer:
            screen.print(writer.where(), soft_wrap=True, markup=False)
    return code

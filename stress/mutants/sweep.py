"""``python -m spark.mutants``: sweeps over known bugs and over the true core.

Sweeps every mutant of the catalogue on the suite that must report it, and the true core on the same
suites with ten times as many seeds, which must stay silent.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.table import Table

from pulsar_ml.campaign.plan import probe
from pulsar_ml.campaign.plan.plan import Plan, pieces_of_size
from pulsar_ml.campaign.run.runner import Runner
from pulsar_ml.campaign.run.waves import Outcome, run_campaign
from pulsar_ml.campaign.store.store import RUN_VERSION, RunStore
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.crashed_trial import INVARIANTS
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, CONTROLLED, THREADS, TrialOptions
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import explained, option
from pulsar_ml.cli.output import console as table_console
from pulsar_ml.cli.output import print_json
from pulsar_ml.distributed.driver import check_spark
from pulsar_ml.errors import UsageError
from pulsar_ml.exit_codes import (
    BASIC,
    CLEAN,
    FAILED,
    INTERRUPTED,
    USAGE,
    VIOLATION,
    ExitCode,
)
from pulsar_ml.suites.registry import SUITES
from pulsar_ml.sweep.display import Display
from pulsar_ml.sweep.options import POOL, SPARK, RunnerOptions
from pulsar_ml.sweep.runners import open_runner
from pulsar_ml.terminal.command_line import DEFAULT_SUITES
from pulsar_ml.terminal.console import new_console
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.stop_request import StopRequest
from pulsar_ml.terminal.tables import print_table
from stress.mutants.build import build
from stress.mutants.catalogue import CATALOGUE, Mutant

TRUE_CORE_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Row:
    """The result of a sweep over one build. ``mutant`` is None for the true core."""

    mutant: str | None
    title: str
    suites: tuple[str, ...]
    seeds: int
    found: int
    crashed: int
    first_seed: int | None
    invariants: tuple[str, ...]

    @property
    def as_expected(self) -> bool:
        reported = self.found + self.crashed > 0
        return reported == (self.mutant is not None)


class Comparison:
    """Sweeps builds one after the other on one runner; each has a directory of its own."""

    def __init__(
        self,
        options: TrialOptions,
        runner: Runner,
        directory: Path,
        stop: StopRequest,
        display: Display,
    ) -> None:
        self.options = options  # of the true core; a mutant's differ in the build
        self.runner = runner
        self.directory = directory
        self.stop = stop
        self.display = display

    def sweep(self, name: str, suites: Sequence[str], seeds: int, options: TrialOptions) -> Outcome:
        """Raises KeyboardInterrupt when the sweep was stopped before its end."""
        build_id = probe.check([SUITES[suite] for suite in suites], options)
        plan = Plan(
            tuple(suites),
            0,
            seeds,
            pieces_of_size(seeds, max(1, seeds // (4 * self.runner.slots))),
            options,
        )
        job = Job(f"{self.directory.name}-{name}", build_id, options)
        store = RunStore(self.directory / name)
        outcome = run_campaign(
            plan,
            job,
            self.runner,
            store,
            stopped=self.stop.requested,
            show=self.display.show,
            wave_seconds=5.0,
        )
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        return outcome

    def mutant(self, mutant: Mutant, module: Path, seeds: int) -> Row:
        mode = mutant.mode or self.options.mode
        options = replace(self.options, module=str(module), mutant=mutant.id, mode=mode)
        return row(
            mutant.id,
            mutant.title,
            (mutant.suite,),
            seeds,
            self.sweep(mutant.id, (mutant.suite,), seeds, options),
        )

    def true_core(self, suites: tuple[str, ...], seeds: int) -> Row:
        return row(
            None,
            "the true core",
            suites,
            seeds,
            self.sweep("true-core", suites, seeds, self.options),
        )


def row(
    mutant: str | None, title: str, suites: tuple[str, ...], seeds: int, outcome: Outcome
) -> Row:
    groups = outcome.summary.in_order()
    crashes = sum(group.count for group in groups if group.invariant in INVARIANTS.values())
    return Row(
        mutant=mutant,
        title=title,
        suites=suites,
        seeds=seeds * len(suites),
        found=sum(totals.violation for totals in outcome.summary.suites.values()) - crashes,
        crashed=crashes + len(outcome.failures),
        first_seed=min((group.seed for group in groups), default=None),
        invariants=tuple(sorted({group.invariant for group in groups})),
    )


def table(rows: Sequence[Row]) -> Table:
    result = Table(title="sweeps over mutants and over the true core")
    for column in ("mutant", "mistake", "suite"):
        result.add_column(column, overflow="fold")
    for column in ("seeds", "found", "crashed", "first seed"):
        result.add_column(column, justify="right")
    result.add_column("reported as", overflow="fold")
    result.add_column("")
    for line in rows:
        result.add_row(
            line.mutant or "-",
            line.title,
            ", ".join(line.suites),
            f"{line.seeds:,}",
            str(line.found),
            str(line.crashed),
            "-" if line.first_seed is None else str(line.first_seed),
            ", ".join(line.invariants) or "-",
            "as expected" if line.as_expected else "WRONG",
        )
    return result


def chosen(ids: Sequence[str], engine: str) -> list[Mutant]:
    known = {mutant.id: mutant for mutant in CATALOGUE}
    for name in ids:
        if name not in known:
            raise UsageError(f"there is no mutant {name!r}; there are: {', '.join(known)}")
        if known[name].mode and engine == THREADS:
            raise UsageError(f"real threads do not show mutant {name}; use --engine {CONTROLLED}")
    swept = [
        mutant
        for mutant in CATALOGUE
        if not mutant.equivalent and (engine == CONTROLLED or (not mutant.rare and not mutant.mode))
    ]
    return [known[name] for name in ids] or swept


@new_command("mutants", exit_codes=(*BASIC[:1], VIOLATION, *BASIC[1:]))
@click.argument("ids", nargs=-1, metavar="[MUTANT]...")
@shared.seeds(20, "Of each mutant; the true core gets ten times as many.")
@shared.threads(64)
@option(
    "--engine",
    default=THREADS,
    show_default=True,
    type=click.Choice([THREADS, CONTROLLED]),
    group=shared.SEARCH,
    help="Real threads, or the engine, whose results are always the same.",
)
@shared.executions(2000)
@shared.runner(POOL, SPARK, default=POOL)
@shared.master("local[*]")
@shared.master_seconds
@shared.conf
@shared.workers
@shared.out("Results directory.  [default: runs/mutants-ID]")
@shared.as_json
def command(
    ids: tuple[str, ...],
    seeds: int,
    threads: int | None,
    engine: str,
    executions: int,
    runner: str,
    master: str,
    master_seconds: float,
    conf: tuple[str, ...],
    workers: int | None,
    out: Path | None,
    as_json: bool,
) -> ExitCode:
    """Show that sweeps report known bugs (default: all but the rare) and nothing on the true core.

    The mutants are compiled into a module under build/, apart from the product. Each is swept on
    the suite that must report it.

    \b
    python -m spark.mutants H13 M17 --seeds 50
    python -m spark.mutants H06 M11 --engine controlled
    python -m spark.mutants --runner spark --master 'local-cluster[2,1,1024]'

    Exit code 1: a mutant was missed, or the true core was reported.
    """
    run_id = f"mutants-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
    directory = out or Path("runs") / run_id
    rows: list[Row] = []
    screen = new_console(stderr=True)
    code: ExitCode = FAILED
    try:
        mutants = chosen(ids, engine)
        options = RunnerOptions(
            runner,
            master,
            shared.spark_settings(conf),
            workers,
            None,
            DEFAULT_SUITES,
            master_seconds=master_seconds,
        )
        if runner == SPARK:
            check_spark(master)
        screen.print(f"building {len(CATALOGUE)} mutants")
        module = build(checked=engine == CONTROLLED)
        trial = TrialOptions(threads=threads)
        if engine == CONTROLLED:
            trial = replace(trial, engine=engine, module=CHECKED, executions=executions)
        suites = tuple(dict.fromkeys(mutant.suite for mutant in mutants))
        with ExitStack() as stack, StopRequest() as stop:
            display = stack.enter_context(closing(Display(screen)))
            opened = opened_runner(trial, options, suites, directory, display)
            open_one = stack.enter_context(opened)
            stop.install()
            comparison = Comparison(trial, open_one, directory, stop, display)
            stack.enter_context(display.live())
            for mutant in mutants:  # one by one, so that finished rows are kept
                rows.append(comparison.mutant(mutant, module, seeds))  # noqa: PERF401
            rows.append(comparison.true_core(suites, TRUE_CORE_FACTOR * seeds))
        code = CLEAN if all(line.as_expected for line in rows) else VIOLATION
    except KeyboardInterrupt:
        echo("Interrupted", err=True)
        code = INTERRUPTED
    except Exception as error:  # the rows so far are kept and printed
        message, code = explained(error)
        echo(message, err=True)
    if rows:
        keep(rows, directory, code)
    show(rows, directory, as_json=as_json)
    return code


def keep(rows: Sequence[Row], directory: Path, code: ExitCode) -> None:
    """Writes the table beside the results, for ``pulsar-ml report``."""
    status = {FAILED: "failed", USAGE: "failed", INTERRUPTED: "interrupted"}.get(code, "finished")
    run = {"version": RUN_VERSION, "run_id": directory.name, "status": status}
    table = {
        "version": 1,
        "rows": [{**asdict(line), "as_expected": line.as_expected} for line in rows],
    }
    for name, content in (("kill-table.json", table), ("run.json", run)):
        (directory / name).write_text(json.dumps(content, indent=2) + "\n")


@contextmanager
def opened_runner(
    trial: TrialOptions,
    options: RunnerOptions,
    suites: Sequence[str],
    directory: Path,
    display: Display,
) -> Iterator[Runner]:
    """The runner of sweeps over these suites."""
    found: list[Suite] = [SUITES[name] for name in suites]
    probe.check(found, trial)
    with ExitStack() as stack:
        store = RunStore(directory / "log")
        yield open_runner(options, found, trial, store, stack, display.note)


def show(rows: Sequence[Row], directory: Path, *, as_json: bool) -> None:
    if as_json:
        data = [{**asdict(line), "as_expected": line.as_expected} for line in rows]
        print_json({"directory": os.fspath(directory), "rows": data})
    elif rows:
        screen = table_console()
        print_table(screen, table(rows), ("crashed", "first seed", "suite"))
        screen.print(f"results in {directory}", soft_wrap=True)

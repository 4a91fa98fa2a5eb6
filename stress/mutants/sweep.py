"""Known bugs against the true core: ``python -m spark.mutants``.

Sweeps every mutant of the catalogue on the suite that must report it, and the true core on the same
suites with ten times as many seeds, which must stay silent.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
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
from pulsar_ml.distributed.session import check_environment
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.suites.registry import SUITES
from pulsar_ml.sweep.progress import LiveLine
from pulsar_ml.sweep.run import CLEAN, FAILED, INTERRUPTED, USAGE, VIOLATION, Place, Sweep
from pulsar_ml.sweep.stop_request import StopRequest
from stress.mutants.build import build
from stress.mutants.catalogue import CATALOGUE, Mutant

TRUE_CORE_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Row:
    """What a sweep over one build said. ``mutant`` is None for the true core."""

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
        seen = self.found + self.crashed > 0
        return seen if self.mutant else not seen


class Comparison:
    """Sweeps builds one after the other on one runner; each has a directory of its own."""

    def __init__(
        self,
        options: TrialOptions,
        runner: Runner,
        directory: Path,
        stop: StopRequest,
        shown: LiveLine,
    ) -> None:
        self.options = options  # of the true core; each mutant's are the same but for the build
        self.runner = runner
        self.directory = directory
        self.stop = stop
        self.shown = shown

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
            stopped=self.stop.asked,
            show=self.shown.show,
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
    lost = sum(group.count for group in groups if group.invariant in INVARIANTS.values())
    return Row(
        mutant=mutant,
        title=title,
        suites=suites,
        seeds=seeds * len(suites),
        found=sum(totals.violation for totals in outcome.summary.suites.values()) - lost,
        crashed=lost + len(outcome.failures),
        first_seed=min((group.seed for group in groups), default=None),
        invariants=tuple(sorted({group.invariant for group in groups})),
    )


def table(rows: Sequence[Row]) -> Table:
    made = Table(title="sweeps over mutants and over the true core")
    for column in (
        "mutant",
        "mistake",
        "suite",
        "seeds",
        "found",
        "crashed",
        "first seed",
        "reported as",
        "",
    ):
        made.add_column(
            column,
            justify="right" if column in {"seeds", "found", "crashed", "first seed"} else "left",
        )
    for line in rows:
        made.add_row(
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
    return made


def chosen(ids: Sequence[str], engine: str) -> list[Mutant]:
    known = {mutant.id: mutant for mutant in CATALOGUE}
    for name in ids:
        if name not in known:
            raise UsageError(f"there is no mutant {name!r}; there are: {', '.join(known)}")
        if known[name].mode and engine == THREADS:
            raise UsageError(
                f"real threads do not show mutant {name}; it is for the engine: --engine {CONTROLLED}"
            )
    swept = [
        mutant
        for mutant in CATALOGUE
        if not mutant.equivalent and (engine == CONTROLLED or not mutant.rare and not mutant.mode)
    ]
    return [known[name] for name in ids] or swept


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("ids", nargs=-1, metavar="[MUTANT]...")
@click.option(
    "--seeds", default=20, show_default=True, type=click.IntRange(1), help="Seeds for each mutant."
)
@click.option(
    "--engine",
    default=THREADS,
    show_default=True,
    type=click.Choice([THREADS, CONTROLLED]),
    help="Real threads, or the engine, which controls every interleaving and always answers the same.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    help="Threads of a program. Default: the suite's own number.",
)
@click.option(
    "--executions",
    default=2000,
    show_default=True,
    type=click.IntRange(1),
    help="Of a seed in the engine.",
)
@click.option(
    "--runner", "kind", type=click.Choice(["pool", "spark"]), default="pool", show_default=True
)
@click.option("--master", metavar="URL", help="Spark master. Default: local[*].")
@click.option(
    "--workers", type=click.IntRange(1), help="Processes of the pool. Default: cores / threads."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Results directory. Default: runs/mutants-ID."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(
    ids: tuple[str, ...],
    seeds: int,
    engine: str,
    threads: int | None,
    executions: int,
    kind: str,
    master: str | None,
    workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Show that sweeps report known bugs (default: all but the rare) and nothing on the true core.

    Each MUTANT is compiled into a module of its own under build/, apart from the product, and swept on
    the suite that must see it; the true core gets ten times as many seeds.

    \b
    Examples:
      python -m spark.mutants
      python -m spark.mutants H13 M17 --seeds 50
      python -m spark.mutants H06 --seeds 2000
      python -m spark.mutants H06 M11 --engine controlled
      python -m spark.mutants --runner spark --master 'local-cluster[2,1,1024]'

    \b
    Exit codes: 0 all as expected, 1 a mutant was missed or the true core was blamed, 2 usage error,
    4 failed (no Java, the build, ...), 130 interrupted.
    """
    directory = (
        out or Path("runs") / f"mutants-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
    )
    rows: list[Row] = []
    console = Console(stderr=True)
    try:
        mutants = chosen(ids, engine)
        if kind == "spark":
            check_environment()
        console.print(f"building {len(CATALOGUE)} mutants")
        module = build(checked=engine == CONTROLLED)
        options = TrialOptions(threads=threads)
        if engine == CONTROLLED:
            options = replace(options, engine=engine, module=CHECKED, executions=executions)
        suites = tuple(dict.fromkeys(mutant.suite for mutant in mutants))
        with ExitStack() as stack, StopRequest() as stop:
            shown = LiveLine(console)
            place = Place(kind, master, {}, workers, None, "pulsar_ml.suites.registry")
            runner = stack.enter_context(opened(options, place, suites, directory, shown))
            stop.install()
            comparison = Comparison(options, runner, directory, stop, stack.enter_context(shown))
            for mutant in mutants:
                rows.append(comparison.mutant(mutant, module, seeds))
            rows.append(comparison.true_core(suites, TRUE_CORE_FACTOR * seeds))
        code = CLEAN if all(line.as_expected for line in rows) else VIOLATION
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        code = USAGE
    except (PulsarMlError, OSError, RuntimeError) as error:
        click.echo(f"Failed: {error}", err=True)
        code = FAILED
    except KeyboardInterrupt:
        click.echo("Interrupted", err=True)
        code = INTERRUPTED
    if rows:
        keep(rows, directory, code)
    show(rows, directory, as_json=as_json)
    sys.exit(code)


def keep(rows: Sequence[Row], directory: Path, code: int) -> None:
    """Leaves the table beside the results, for ``python -m pulsar_ml report``."""
    status = {FAILED: "failed", USAGE: "failed", INTERRUPTED: "interrupted"}.get(code, "finished")
    run = {"version": RUN_VERSION, "run_id": directory.name, "status": status}
    table = {
        "version": 1,
        "rows": [{**asdict(line), "as_expected": line.as_expected} for line in rows],
    }
    for name, content in (("kill-table.json", table), ("run.json", run)):
        (directory / name).write_text(json.dumps(content, indent=2) + "\n")


@contextmanager
def opened(
    options: TrialOptions, place: Place, suites: Sequence[str], directory: Path, shown: LiveLine
) -> Iterator[Runner]:
    """The runner of a sweep over these suites."""
    found: list[Suite] = [SUITES[name] for name in suites]
    job = Job(directory.name, probe.check(found, options), options)
    sweep = Sweep(Plan(tuple(suites), 0, 1, 1, options), found, job, place)
    with ExitStack() as stack:
        runner = sweep.open_runner(RunStore(directory / "log"), stack, shown.say)
        stack.callback(runner.close)
        yield runner


def show(rows: Sequence[Row], directory: Path, *, as_json: bool) -> None:
    if as_json:
        data = [{**asdict(line), "as_expected": line.as_expected} for line in rows]
        click.echo(json.dumps({"directory": os.fspath(directory), "rows": data}, indent=2))
    elif rows:
        console = Console(width=None if sys.stdout.isatty() else 150)
        console.print(table(rows))
        console.print(f"results in {directory}")


if __name__ == "__main__":
    main()

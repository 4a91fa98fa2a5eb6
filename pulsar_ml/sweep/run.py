"""One sweep from its plan to its summary: opens the runner, drives the campaign, prints and stores."""

from __future__ import annotations

import json
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from pulsar_ml.campaign.plan.pace import Pace
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.plan.rounds import Round, Rounds
from pulsar_ml.campaign.run.resume import Past, digest_of
from pulsar_ml.campaign.run.runner import InlineRunner, PoolRunner, Runner, default_workers
from pulsar_ml.campaign.run.waves import Outcome, Source, run_campaign
from pulsar_ml.campaign.store import summary as report
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.engines import is_controlled, most_threads
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.distributed.runner import SparkRunner
from pulsar_ml.distributed.session import (
    SPECULATION,
    check_master,
    in_driver,
    open_session,
    packed,
    repeating,
    settings,
    task_cpus,
    under_spark_submit,
)
from pulsar_ml.distributed.shipping import link_installed, pack
from pulsar_ml.sweep.command_lines import replay_command, resume_command, search_command
from pulsar_ml.sweep.forever import Forever, publish, run_forever
from pulsar_ml.sweep.progress import Display, clock
from pulsar_ml.sweep.stop_request import StopRequest

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Exhaustive

SHOWN_ARMS = 8  # of a round that begins
CLEAN, VIOLATION, USAGE, NOTHING, FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how to run, as the command line said it."""

    runner: str
    master: str | None
    conf: dict[str, str]
    workers: int | None
    cpus: int | None
    registry: str
    environment: str | None = None  # the archive that executors run in
    rows: str = "driver"  # who writes rows: it, or the executors
    task_seconds: float = 0.0  # what a task should take; 0: each chunk is one
    speculate: bool = False


class Sweep:
    """One sweep from its plan to its summary."""

    def __init__(
        self,
        plan: Plan,
        suites: Sequence[Suite],
        job: Job,
        place: Place,
        command: Mapping[str, Any] | None = None,
        *,
        rounds: Rounds | None = None,
        search: Exhaustive | None = None,
        forever: Forever | None = None,
    ) -> None:
        self.plan = plan
        self.rounds = rounds
        self.search = search
        self.forever = forever
        self.source: Source = rounds or search or plan
        self.suites = {suite.name: suite for suite in suites}
        self.job = job
        self.place = place
        self.command = dict(
            command or {}
        )  # options of the command line, as one that resumes needs them
        self.master: str | None = None  # known when Spark starts
        self.started = now()
        self.resumed: list[str] = []
        self.done: Collection[int] = ()

    @property
    def planned(self) -> int | None:
        """Trials, as far as they are known; None when there is no end."""
        return None if self.forever else self.source.trials

    def run(
        self,
        out: Path | Past,
        display: Display,
        stop: StopRequest,
        wave_seconds: float,
        *,
        as_json: bool,
    ) -> int:
        """Runs what there is to run, prints the summary and returns the exit code.

        Results go to a new directory, or to that of an earlier run.
        """
        outcome = Outcome(status="running")
        with ExitStack() as stack:
            if isinstance(out, Past):
                store = self.go_on(out, outcome)
            else:
                store = RunStore(out, self.facts(out, outcome))
            stack.callback(store.close)
            try:
                if outcome.summary.trials == self.planned:
                    outcome.status = "finished"
                else:
                    self.open_and_run(store, outcome, display, stop, wave_seconds)
            except BaseException as error:
                outcome.status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                with suppress(OSError):  # perhaps the very reason
                    self.write(store, outcome, problem=str(error))
                display.end(status=outcome.status, problem=str(error))
                raise
            self.write(store, outcome)
            self.print(store, outcome, as_json=as_json)
            if self.forever is not None:
                publish(store.directory, display.note)
            display.end(status=outcome.status, exit_code=exit_code(outcome))
        return exit_code(outcome)

    def go_on(self, past: Past, outcome: Outcome) -> RunStore:
        """Takes over what an earlier process left."""
        self.done = past.done
        self.started = past.facts.get("started_at", self.started)
        self.resumed = [*past.facts.get("resumed_at", []), now()]
        outcome.summary, outcome.waves = past.summary, past.waves
        outcome.earlier = past.summary.trials
        past.store.tidy()
        past.store.write_records(past.summary.groups.values())
        if self.planned is None or outcome.earlier < self.planned:
            self.write(past.store, outcome)
        return past.store

    def open_and_run(
        self,
        store: RunStore,
        outcome: Outcome,
        display: Display,
        stop: StopRequest,
        wave_seconds: float,
    ) -> None:
        with ExitStack() as stack:
            runner = self.open_runner(store, stack, display.note)
            stack.callback(runner.close)
            stop.install()  # after Spark, which takes Ctrl-C for itself
            display.begin(
                self.headline(runner, store, outcome),
                run_id=self.job.run_id,
                build_id=self.job.build_id,
                directory=report.short_path(store.directory),
                suites=list(self.plan.suites),
                planned=self.planned,
                earlier=outcome.earlier,
                runner=runner.name,
                slots=runner.slots,
            )
            with display.live():
                self.campaign(runner, store, outcome, stop, display, wave_seconds)

    def campaign(
        self,
        runner: Runner,
        store: RunStore,
        outcome: Outcome,
        stop: StopRequest,
        display: Display,
        wave_seconds: float,
    ) -> None:
        if self.forever is not None:
            run_forever(
                self.plan,
                self.job,
                runner,
                store,
                self.forever,
                outcome=outcome,
                done=self.done,
                asked=stop.asked,
                display=display,
                wave_seconds=wave_seconds,
            )
            return

        def begins(number: int, decided: Round) -> None:
            if any(chunk.chunk_id not in self.done for chunk in decided.chunks()):
                display.note(f"round {number + 1}: {shares(decided)}")

        if self.rounds is not None:
            self.rounds.on_round = begins
        run_campaign(
            self.source,
            self.job,
            runner,
            store,
            outcome=outcome,
            done=self.done,
            stopped=stop.asked,
            show=display.show,
            on_found=display.found,
            wave_seconds=wave_seconds,
            staged=self.place.rows == "executors",
        )

    def open_runner(self, store: RunStore, stack: ExitStack, note: Callable[[str], None]) -> Runner:
        threads = max(most_threads(suite, self.plan.options) for suite in self.suites.values())
        if self.place.runner == "inline":
            return InlineRunner(self.suites)
        if self.place.runner == "pool":
            return PoolRunner(self.suites, workers=self.place.workers or default_workers(threads))
        return self.open_spark(store, stack, note, threads)

    def open_spark(
        self, store: RunStore, stack: ExitStack, note: Callable[[str], None], threads: int
    ) -> Runner:
        scratch = Path(tempfile.mkdtemp(prefix="pulsar_ml-spark-"))
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        given = dict(self.place.conf)
        if self.place.master:
            given["spark.master"] = repeating(self.place.master)
        master = given.get("spark.master") or submitted_master() or "local[*]"
        check_master(master)
        self.master = master
        cpus = self.place.cpus or task_cpus(master, threads)
        if self.place.cpus is None and cpus < threads:
            cores = report.counted(cpus, "core")
            note(
                f"{threads} threads per trial on executors of {cores}: one trial at a time on each"
            )
        site = link_installed(scratch / "site") if self.place.environment is None else None
        log = store.directory / "spark.log"
        defaults = settings(master, cpus=cpus, scratch=scratch, site=site)
        if self.place.environment is not None:
            defaults |= packed(Path(self.place.environment), master)
        if self.place.speculate:
            defaults |= SPECULATION
        work = store.directory / "executors"
        session = open_session(defaults, given, scratch=scratch, log=log, work=work)
        if session.sparkContext.uiWebUrl:
            note(f"Spark's pages are at {session.sparkContext.uiWebUrl}")
        session.sparkContext.addPyFile(
            str(pack(scratch / "pulsar_ml_apps.zip", self.place.registry))
        )
        return SparkRunner(
            session,
            cpus=cpus,
            registry=self.place.registry,
            note=note,
            log=log if in_driver(master) else None,
            pace=Pace(self.place.task_seconds),
            staging=store.directory if self.place.rows == "executors" else None,
        )

    def headline(self, runner: Runner, store: RunStore, outcome: Outcome) -> str:
        plan = self.plan
        seeds = f"{plan.first_seed} to {plan.first_seed + plan.seeds - 1}"
        parts = f"{plan.chunk_count:,} chunks"
        if self.forever is not None:
            seeds = f"from {plan.first_seed} without an end"
            parts = f"chunks of {report.counted(plan.seeds // plan.pieces, 'seed')}"
        elif self.search is not None:
            parts = f"searched to the end, up to {self.search.parts:,} parts of each at once"
        elif self.rounds is not None:
            seeds, parts = f"from {plan.first_seed}", report.counted(self.rounds.rounds, "round")
            parts += f" over {report.counted(len(self.rounds.arms), 'arm')}"
        if self.planned is None:
            trials = f"{outcome.earlier:,} trials and more" if outcome.earlier else "trials"
        else:
            rest = f"{self.planned - outcome.earlier:,} of " if outcome.earlier else ""
            trials = f"{rest}{self.planned:,} trials"
        return (
            f"{trials} of {', '.join(plan.suites)}: seeds {seeds}, "
            f"{engine_words(plan.options, self.rounds)}, build {self.job.build_id}; {parts}, "
            f"{runner.slots} at once ({runner.name}); results in {report.short_path(store.directory)}"
        )

    def write(self, store: RunStore, outcome: Outcome, *, problem: str | None = None) -> None:
        """Brings run.json up to date."""
        store.write_run(self.facts(store.directory, outcome, problem=problem))

    def facts(
        self, directory: Path, outcome: Outcome, *, problem: str | None = None
    ) -> dict[str, Any]:
        """The content of run.json."""
        ended = outcome.status != "running"
        return {
            "run_id": self.job.run_id,
            "status": outcome.status,
            "problem": problem,
            "build_id": self.job.build_id,
            "plan": self.plan.to_json(),
            "rounds": None if self.rounds is None else self.rounds.to_data(),
            "search": None if self.search is None else self.search.to_data(),
            "suites": digest_of(self.suites.values()),
            "limits": asdict(self.job.limits),
            "command": self.command,
            "runner": {**asdict(self.place), "master": self.master or self.place.master},
            "versions": versions(),
            "host": socket.gethostname(),
            "started_at": self.started,
            "resumed_at": self.resumed,
            "finished_at": now() if ended else None,
            "waves": outcome.waves,
            "failures": [asdict(failure) for failure in outcome.failures],
            "warnings": outcome.warnings,
            "summary": {
                **report.summary_data(
                    outcome.summary, replay_command(directory, self.place.registry)
                ),
                **(self.source_data(directory) if ended else {}),
            },
        }

    def source_data(self, directory: Path) -> dict[str, Any]:
        """What each round gave, or what each search proved; nothing where there is neither."""
        if self.search is not None:
            return {"search": report.search_data(self.search.programs)}
        return (
            {}
            if self.rounds is None
            else {"rounds": report.rounds_data(self.rounds.gains(directory))}
        )

    def proofs(self) -> str:
        """How many programs were searched to their end."""
        if self.search is None:
            return ""
        programs = self.search.programs.values()
        exhausted = sum(bool(searched.exhausted) for searched in programs)
        return f"; {exhausted:,} of {report.counted(len(programs), 'program')} exhausted"

    def print(self, store: RunStore, outcome: Outcome, *, as_json: bool) -> None:
        replay = replay_command(store.directory, self.place.registry)
        directory = report.short_path(store.directory)
        if as_json:
            data = {
                "run_id": self.job.run_id,
                "build_id": self.job.build_id,
                "status": outcome.status,
                "exit_code": exit_code(outcome),
                "directory": directory,
                "seconds": round(outcome.seconds, 3),
                "planned": self.planned,
                "failures": [asdict(failure) for failure in outcome.failures],
                "warnings": outcome.warnings,
                **report.summary_data(outcome.summary, replay),
                **self.source_data(store.directory),
            }
            click.echo(json.dumps(data, indent=2))
            return
        console = Console(width=None if sys.stdout.isatty() else 140)
        report.print_summary(console, outcome.summary, replay)
        if self.rounds is not None and outcome.summary.trials:
            console.print(report.rounds_table(self.rounds.gains(store.directory)))
        if self.search is not None:
            console.print(report.search_table(self.search.programs))
        lines = [*outcome.warnings, *(f"failed: {failure}" for failure in outcome.failures)]
        for failure in outcome.failures:
            if failure.chunk:
                command = search_command(failure.chunk, self.plan.options, self.place.registry)
                lines.append(f"  which seed of it: {command}")
        if outcome.status != "finished":
            lines.append(f"go on with: {resume_command(store.directory, self.place.registry)}")
        lines.append(
            f"{verdict(self.plan.options, outcome, self.planned)}{self.proofs()}; results in {directory}"
        )
        for text in lines:
            console.print(text, soft_wrap=True, highlight=False, markup=False)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def shares(decided: Round) -> str:
    """Where the trials of a round go, the largest parts first."""
    parts = sorted(decided.parts, key=lambda part: (-len(part), part.arm))
    rest = parts[SHOWN_ARMS:]
    told = [f"{part.arm} {len(part):,}" for part in parts[:SHOWN_ARMS]]
    return (
        ", ".join(told + ([f"{len(rest)} others {sum(map(len, rest)):,}"] if rest else []))
        + " trials"
    )


def engine_words(options: TrialOptions, rounds: Rounds | None = None) -> str:
    """On what the trials run."""
    if not is_controlled(options):
        return "real threads"
    strategies = rounds.strategies if rounds else (options.strategy,)
    return (
        f"engine controlled (mode {options.mode}, {'strategies' if len(strategies) > 1 else 'strategy'} "
        f"{', '.join(strategies)}, "
        f"{options.executions:,} executions each)"
    )


def verdict(options: TrialOptions, outcome: Outcome, planned: int | None) -> str:
    """The last line of a sweep: how it ended and what that means. Without an end, nothing was planned."""
    summary = outcome.summary
    if not summary.trials:
        none = "no trial" if planned is None else f"none of {planned:,} trials"
        return f"{outcome.status}: {none} came to its end"
    ran = (
        f"{summary.trials:,} trials"
        if planned is None
        else f"{summary.trials:,} of {planned:,} trials"
    )
    if is_controlled(options):
        ran += f" with {summary.executions:,} executions under the engine"
    if summary.judged:
        ran += f", {report.counted(summary.judged, 'history', 'histories')} judged"
        ran += f" ({summary.unknown:,} unknown)"
    ran += f" in {clock(outcome.seconds)}"
    match summary.verdict:
        case "violation":
            signatures = report.counted(len(summary.groups), "signature")
            found = f"{report.counted(summary.violations, 'violation')} with {signatures}"
        case "nothing_exercised":
            found = f"nothing exercised by {', '.join(summary.idle_suites)}, which proves nothing"
        case _:
            found = "no violation"
    return f"{outcome.status}: {found} in {ran}"


def exit_code(outcome: Outcome) -> int:
    """What did not run comes first: a clean rest is no clean sweep."""
    by_status = {"interrupted": INTERRUPTED, "failed": FAILED}
    by_verdict = {"violation": VIOLATION, "nothing_exercised": NOTHING, "clean": CLEAN}
    return by_status.get(outcome.status, by_verdict[outcome.summary.verdict])


def submitted_master() -> str | None:
    """The master that spark-submit was told."""
    if not under_spark_submit():
        return None
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().get("spark.master")


def versions() -> dict[str, str]:
    """Versions that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in ("pulsar_ml", "pyspark", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found

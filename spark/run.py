"""One sweep from its plan to its summary: opens the runner, drives the campaign, prints and stores."""

from __future__ import annotations

import json
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from rich.console import Console

from pulsar_ml.campaign import report
from pulsar_ml.campaign.chunk import Job
from pulsar_ml.campaign.engines import is_controlled, most_threads
from pulsar_ml.campaign.merge import Group
from pulsar_ml.campaign.plan import Plan
from pulsar_ml.campaign.runner import InlineRunner, PoolRunner, Runner, default_workers
from pulsar_ml.campaign.store import RunStore
from pulsar_ml.campaign.suite import Suite
from pulsar_ml.campaign.trial import TrialOptions
from pulsar_ml.campaign.waves import Outcome, run_campaign
from spark.commands import replay_command, search_command
from spark.interrupt import StopRequest
from spark.progress import LiveLine, clock
from spark.runner import SparkRunner
from spark.session import check_master, open_session, packed, settings, task_cpus, under_spark_submit
from spark.ship import link_installed, pack

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


class Sweep:
    """One sweep from its plan to its summary."""

    def __init__(self, plan: Plan, suites: Sequence[Suite], job: Job, place: Place) -> None:
        self.plan = plan
        self.suites = {suite.name: suite for suite in suites}
        self.job = job
        self.place = place
        self.master: str | None = None  # known when Spark starts
        self.started = datetime.now(UTC)

    def run(
        self, out: Path, console: Console, stop: StopRequest, wave_seconds: float, *, as_json: bool
    ) -> int:
        """Runs it, prints the summary and returns the exit code."""
        store = RunStore(out)
        outcome = Outcome(status="running")
        self.write(store, outcome)
        with ExitStack() as stack:
            try:
                shown = LiveLine(console)
                runner = self.open_runner(store, stack, shown.say)
                stack.callback(runner.close)
                stop.install()  # after Spark, which takes Ctrl-C for itself
                shown.say(self.headline(runner, store))
                with shown:
                    self.campaign(runner, store, outcome, stop, shown, wave_seconds)
            except BaseException as error:
                outcome.status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                with suppress(OSError):  # perhaps the very reason
                    self.write(store, outcome, problem=str(error))
                raise
            self.write(store, outcome)
            self.print(store, outcome, as_json=as_json)
        return exit_code(outcome)

    def campaign(
        self,
        runner: Runner,
        store: RunStore,
        outcome: Outcome,
        stop: StopRequest,
        shown: LiveLine,
        wave_seconds: float,
    ) -> None:
        def found(group: Group) -> None:
            shown.say(f"violation: {group.suite} {group.invariant} at seed {group.seed}: {group.message}")

        run_campaign(
            self.plan,
            self.job,
            runner,
            store,
            outcome=outcome,
            stopped=stop.asked,
            show=shown.show,
            on_found=found,
            wave_seconds=wave_seconds,
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
            given["spark.master"] = self.place.master
        master = given.get("spark.master") or submitted_master() or "local[*]"
        check_master(master)
        self.master = master
        cpus = self.place.cpus or task_cpus(master, threads)
        if self.place.cpus is None and cpus < threads:
            cores = report.counted(cpus, "core")
            note(f"{threads} threads per trial on executors of {cores}: one trial at a time on each")
        site = link_installed(scratch / "site") if self.place.environment is None else None
        log = store.directory / "spark.log"
        defaults = settings(master, cpus=cpus, scratch=scratch, site=site)
        if self.place.environment is not None:
            defaults |= packed(Path(self.place.environment), master)
        session = open_session(defaults, given, scratch=scratch, log=log)
        session.sparkContext.addPyFile(str(pack(scratch / "pulsar_ml_apps.zip", self.place.registry)))
        return SparkRunner(session, cpus=cpus, registry=self.place.registry, note=note)

    def headline(self, runner: Runner, store: RunStore) -> str:
        plan = self.plan
        return (
            f"{plan.trials:,} trials of {', '.join(plan.suites)}: seeds {plan.first_seed} to "
            f"{plan.first_seed + plan.seeds - 1}, {engine_words(plan.options)}, "
            f"build {self.job.build_id}; {plan.chunk_count:,} chunks, "
            f"{runner.slots} at once ({runner.name}); results in {report.short_path(store.directory)}"
        )

    def write(self, store: RunStore, outcome: Outcome, *, problem: str | None = None) -> None:
        """Brings run.json up to date."""
        ended = outcome.status != "running"
        store.write_run(
            {
                "run_id": self.job.run_id,
                "status": outcome.status,
                "problem": problem,
                "build_id": self.job.build_id,
                "plan": self.plan.to_json(),
                "runner": {**asdict(self.place), "master": self.master},
                "versions": versions(),
                "host": socket.gethostname(),
                "started_at": self.started.isoformat(timespec="seconds"),
                "finished_at": datetime.now(UTC).isoformat(timespec="seconds") if ended else None,
                "waves": outcome.waves,
                "failures": [asdict(failure) for failure in outcome.failures],
                "warnings": outcome.warnings,
                "summary": report.summary_data(outcome.summary, replay_command(store, self.place.registry)),
            }
        )

    def print(self, store: RunStore, outcome: Outcome, *, as_json: bool) -> None:
        replay = replay_command(store, self.place.registry)
        directory = report.short_path(store.directory)
        if as_json:
            data = {
                "run_id": self.job.run_id,
                "build_id": self.job.build_id,
                "status": outcome.status,
                "exit_code": exit_code(outcome),
                "directory": directory,
                "seconds": round(outcome.seconds, 3),
                "planned": self.plan.trials,
                "failures": [asdict(failure) for failure in outcome.failures],
                "warnings": outcome.warnings,
                **report.summary_data(outcome.summary, replay),
            }
            click.echo(json.dumps(data, indent=2))
            return
        console = Console(width=None if sys.stdout.isatty() else 120)
        report.print_summary(console, outcome.summary, replay)
        lines = [*outcome.warnings, *(f"failed: {failure}" for failure in outcome.failures)]
        for failure in outcome.failures:
            if failure.chunk:
                command = search_command(failure.chunk, self.plan.options, self.place.registry)
                lines.append(f"  which seed of it: {command}")
        lines.append(f"{verdict(self.plan, outcome)}; results in {directory}")
        for text in lines:
            console.print(text, soft_wrap=True, highlight=False, markup=False)


def engine_words(options: TrialOptions) -> str:
    """On what the trials run."""
    if not is_controlled(options):
        return "real threads"
    return (
        f"engine controlled (mode {options.mode}, strategy {options.strategy}, "
        f"{options.executions:,} executions each)"
    )


def verdict(plan: Plan, outcome: Outcome) -> str:
    """The last line of a sweep: how it ended and what that means."""
    summary = outcome.summary
    if not summary.trials:
        return f"{outcome.status}: none of {plan.trials:,} trials came to its end"
    ran = f"{summary.trials:,} of {plan.trials:,} trials"
    if is_controlled(plan.options):
        ran += f" with {summary.executions:,} executions under the engine"
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

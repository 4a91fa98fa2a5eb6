"""One sweep from its plan to its summary: opens the runner, drives the campaign, prints and stores."""

from __future__ import annotations

import json
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pulsar_ml.campaign import report
from pulsar_ml.campaign.chunk import Job
from pulsar_ml.campaign.engines import is_controlled, most_threads
from pulsar_ml.campaign.merge import Group
from pulsar_ml.campaign.plan import Plan
from pulsar_ml.campaign.resume import Past, digest_of
from pulsar_ml.campaign.runner import InlineRunner, PoolRunner, Runner, default_workers
from pulsar_ml.campaign.store import RunStore
from pulsar_ml.campaign.suite import Suite
from pulsar_ml.campaign.trial import TrialOptions
from pulsar_ml.campaign.waves import Outcome, run_campaign
from spark.commands import replay_command, resume_command, search_command
from spark.interrupt import StopRequest
from spark.progress import LiveLine, clock
from spark.runner import SparkRunner
from spark.session import (
    check_master,
    open_session,
    packed,
    repeating,
    settings,
    task_cpus,
    under_spark_submit,
)
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

    def __init__(
        self,
        plan: Plan,
        suites: Sequence[Suite],
        job: Job,
        place: Place,
        command: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan = plan
        self.suites = {suite.name: suite for suite in suites}
        self.job = job
        self.place = place
        self.command = dict(command or {})  # options of the command line, as one that resumes needs them
        self.master: str | None = None  # known when Spark starts
        self.started = now()
        self.resumed: list[str] = []
        self.done: Container[int] = ()

    def run(
        self, out: Path | Past, console: Console, stop: StopRequest, wave_seconds: float, *, as_json: bool
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
                if outcome.summary.trials == self.plan.trials:
                    outcome.status = "finished"
                else:
                    self.open_and_run(store, outcome, console, stop, wave_seconds)
            except BaseException as error:
                outcome.status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                with suppress(OSError):  # perhaps the very reason
                    self.write(store, outcome, problem=str(error))
                raise
            self.write(store, outcome)
            self.print(store, outcome, as_json=as_json)
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
        if outcome.earlier < self.plan.trials:
            self.write(past.store, outcome)
        return past.store

    def open_and_run(
        self, store: RunStore, outcome: Outcome, console: Console, stop: StopRequest, wave_seconds: float
    ) -> None:
        with ExitStack() as stack:
            shown = LiveLine(console)
            runner = self.open_runner(store, stack, shown.say)
            stack.callback(runner.close)
            stop.install()  # after Spark, which takes Ctrl-C for itself
            shown.say(self.headline(runner, store, outcome))
            with shown:
                self.campaign(runner, store, outcome, stop, shown, wave_seconds)

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
            done=self.done,
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
            given["spark.master"] = repeating(self.place.master)
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

    def headline(self, runner: Runner, store: RunStore, outcome: Outcome) -> str:
        plan = self.plan
        rest = f"{plan.trials - outcome.earlier:,} of " if outcome.earlier else ""
        return (
            f"{rest}{plan.trials:,} trials of {', '.join(plan.suites)}: seeds {plan.first_seed} to "
            f"{plan.first_seed + plan.seeds - 1}, {engine_words(plan.options)}, "
            f"build {self.job.build_id}; {plan.chunk_count:,} chunks, "
            f"{runner.slots} at once ({runner.name}); results in {report.short_path(store.directory)}"
        )

    def write(self, store: RunStore, outcome: Outcome, *, problem: str | None = None) -> None:
        """Brings run.json up to date."""
        store.write_run(self.facts(store.directory, outcome, problem=problem))

    def facts(self, directory: Path, outcome: Outcome, *, problem: str | None = None) -> dict[str, Any]:
        """The content of run.json."""
        ended = outcome.status != "running"
        return {
            "run_id": self.job.run_id,
            "status": outcome.status,
            "problem": problem,
            "build_id": self.job.build_id,
            "plan": self.plan.to_json(),
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
            "summary": report.summary_data(outcome.summary, replay_command(directory, self.place.registry)),
        }

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
        if outcome.status != "finished":
            lines.append(f"go on with: {resume_command(store.directory, self.place.registry)}")
        lines.append(f"{verdict(self.plan, outcome)}; results in {directory}")
        for text in lines:
            console.print(text, soft_wrap=True, highlight=False, markup=False)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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

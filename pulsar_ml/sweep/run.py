"""Runs a planned sweep: opens the runner, drives the campaign, prints the summary, stores."""

from __future__ import annotations

import json
import platform
import socket
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.plan.rounds import Round
from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.run.resume import Past, digest_of
from pulsar_ml.campaign.run.runner import Runner
from pulsar_ml.campaign.run.waves import Outcome, Source, run_campaign
from pulsar_ml.campaign.store import exposure
from pulsar_ml.campaign.store import summary as report
from pulsar_ml.campaign.store.baseline import verdict_against
from pulsar_ml.campaign.store.store import RunStore, record_path
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.distributed.runner import SparkRunner
from pulsar_ml.distributed.session import in_driver
from pulsar_ml.exit_codes import INTERRUPTED, of_run
from pulsar_ml.harness.subjects.hash_seed import hash_seed
from pulsar_ml.harness.testing.known import Baseline, baseline_data
from pulsar_ml.processors import processor_count
from pulsar_ml.sweep.command_lines import resume_command, search_command
from pulsar_ml.sweep.display import Display
from pulsar_ml.sweep.forever import EndlessOptions, publish, run_forever
from pulsar_ml.sweep.options import EXECUTORS, RunnerOptions, from_elsewhere
from pulsar_ml.sweep.planning import Planned
from pulsar_ml.sweep.runners import Clock, Timed, open_runner
from pulsar_ml.sweep.texts import engine_words, shares, verdict
from pulsar_ml.terminal import signals
from pulsar_ml.terminal.command_line import replay_command, short_path
from pulsar_ml.terminal.console import new_console
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.signals import Interrupted, deferred, holding
from pulsar_ml.terminal.stop_request import StopRequest
from pulsar_ml.terminal.tables import print_table
from pulsar_ml.terminal.trust import OPTION
from pulsar_ml.wording import counted

WAVES_OF_CLOCK = 4  # at least so many waves when time bounds a sweep
ROUNDS_OPTIONAL = ("Per trial", "Classes", "Signatures")


class Sweep:
    """A planned sweep, which runs once."""

    def __init__(
        self,
        planned: Planned,
        suites: Sequence[Suite],
        job: Job,
        runner: RunnerOptions,
        command: Mapping[str, Any] | None = None,
        *,
        endless: EndlessOptions | None = None,
        seconds: float | None = None,
        open_ended: bool = False,
        baseline: Baseline | None = None,
    ) -> None:
        """``command`` are the options that run.json keeps; ``seconds`` bound the sweep.

        Violations that the ``baseline`` knows do not count for the exit code.
        """
        self.baseline = baseline
        self.plan = planned.plan
        self.rounds = planned.rounds
        self.search = planned.search
        self.endless = endless
        self.open_ended = open_ended
        self.clock = Clock(seconds)
        self.cores = processor_count()  # of the runner
        self.source: Source = planned.rounds or planned.search or planned.plan
        self.suites = {suite.name: suite for suite in suites}
        self.job = job
        self.runner = runner
        self.command = dict(command or {})
        self.master: str | None = None  # known when Spark starts
        self.started = now()
        self.resumed: list[str] = []
        self.done: Collection[int] = ()

    @property
    def planned(self) -> int | None:
        """The planned trials, as far as they are known; None when time alone ends the sweep."""
        return None if self.open_ended else self.source.trials

    def run(
        self,
        out: Path | Past,
        display: Display,
        stop: StopRequest,
        wave_seconds: float,
        *,
        as_json: bool,
    ) -> int:
        """Runs the remaining chunks, prints the summary and returns the exit code.

        Results go to a new directory, or to that of an earlier run.
        """
        outcome = Outcome(status="running")
        store: RunStore | None = None
        with ExitStack() as stack:
            stack.enter_context(holding())
            try:
                with deferred():  # a run that says "running" is one that can be ended below
                    if isinstance(out, Past):
                        store = self.go_on(out, outcome)
                    else:
                        store = RunStore(out, self.facts(out, outcome))
                    stack.callback(store.close)
                if outcome.summary.trials == self.planned:
                    outcome.status = "finished"
                else:
                    self.open_and_run(store, outcome, display, stop, wave_seconds)
            except BaseException as error:
                if store is not None:
                    self.end(store, outcome, error, stop)
                    display.end(status=outcome.status, problem=str(error))
                raise
            with deferred():
                self.write(store, outcome)
            stop.written()
            self.print(store, outcome, as_json=as_json)
            if self.endless is not None:
                publish(store.directory, display.note)
            display.end(status=outcome.status, exit_code=exit_code(outcome, self.baseline))
        return exit_code(outcome, self.baseline)

    def end(
        self, store: RunStore, outcome: Outcome, error: BaseException, stop: StopRequest
    ) -> None:
        """Writes how the run ended, before anything that may take long is closed."""
        if outcome.status == "running":
            outcome.status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        with suppress(OSError, Interrupted), deferred():  # the disk may be the reason
            self.write(store, outcome, problem=str(error))
        stop.written()

    def go_on(self, past: Past, outcome: Outcome) -> RunStore:
        """Takes over the results of an earlier process."""
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
            try:
                self.open_and_follow(store, outcome, display, stop, wave_seconds, stack)
            except BaseException as error:
                self.end(store, outcome, error, stop)  # closing the runner may take long
                raise

    def open_and_follow(
        self,
        store: RunStore,
        outcome: Outcome,
        display: Display,
        stop: StopRequest,
        wave_seconds: float,
        stack: ExitStack,
    ) -> None:
        runner = open_runner(
            self.runner, self.suites.values(), self.job.options, store, stack, display.note
        )
        if isinstance(runner, SparkRunner):
            self.master = runner.session.sparkContext.master
            self.cores = runner.session.sparkContext.defaultParallelism
            if in_driver(str(self.master)):  # more tasks at once than it has cores
                self.cores = min(self.cores, processor_count())
        stop.install()  # after Spark, which takes Ctrl-C for itself
        display.begin(
            self.headline(runner, store, outcome),
            seconds=self.clock.seconds,
            run_id=self.job.run_id,
            build_id=self.job.build_id,
            directory=short_path(store.directory),
            suites=list(self.plan.suites),
            planned=self.planned,
            earlier=outcome.earlier,
            runner=runner.name,
            slots=runner.slots,
        )
        with display.live(self.planned):
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
        if self.endless is not None:
            run_forever(
                self.plan,
                self.job,
                runner,
                store,
                self.endless,
                outcome=outcome,
                done=self.done,
                stop_requested=stop.requested,
                display=display,
                wave_seconds=wave_seconds,
                cores=self.cores,
            )
            return

        def on_round(number: int, decided: Round) -> None:
            if any(chunk.chunk_id not in self.done for chunk in decided.chunks()):
                display.note(f"round {number + 1}: {shares(decided)}")

        if self.rounds is not None:
            self.rounds.on_round = on_round
        if self.clock.seconds is not None:
            runner = Timed(runner, self.clock, stop.requested)
            wave_seconds = min(wave_seconds, self.clock.seconds / WAVES_OF_CLOCK)
        self.clock.start()
        run_campaign(
            self.source,
            self.job,
            runner,
            store,
            outcome=outcome,
            done=self.done,
            stopped=lambda: stop.requested() or self.clock.is_over(),
            show=lambda moment: display.show(self.shown(moment)),
            on_found=display.found,
            wave_seconds=wave_seconds,
            staged=self.runner.rows == EXECUTORS,
            cores=self.cores,
        )
        if outcome.status == "interrupted" and self.clock.is_over() and not stop.requested():
            outcome.status = "failed" if outcome.failures else "stopped"

    def shown(self, moment: Progress) -> Progress:
        """A moment of the campaign, without the total that nobody planned."""
        return replace(moment, total=None) if self.open_ended else moment

    def headline(self, runner: Runner, store: RunStore, outcome: Outcome) -> str:
        plan = self.plan
        seeds = f"{plan.first_seed} to {plan.first_seed + plan.seeds - 1}"
        parts = f"{plan.chunk_count:,} chunks"
        if self.open_ended:
            bound = "without an end" if self.endless else f"for {self.clock.seconds:g} s"
            seeds = f"from {plan.first_seed} {bound}"
            parts = f"chunks of {counted(max(1, plan.seeds // plan.pieces), 'seed')}"
        elif self.search is not None:
            parts = f"searched to the end, up to {self.search.parts:,} parts of each at once"
        elif self.rounds is not None:
            seeds, parts = f"from {plan.first_seed}", counted(self.rounds.rounds, "round")
            parts += f" over {counted(len(self.rounds.arms), 'arm')}"
        if self.planned is None:
            trials = f"{outcome.earlier:,} trials and more" if outcome.earlier else "trials"
        else:
            rest = f"{self.planned - outcome.earlier:,} of " if outcome.earlier else ""
            trials = f"{rest}{self.planned:,} trials"
        return (
            f"{trials} of {', '.join(plan.suites)}: seeds {seeds}, "
            f"{engine_words(plan.options, self.rounds)}, build {self.job.build_id}; {parts}, "
            f"{runner.slots} at once ({runner.name}); results in {short_path(store.directory)}"
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
            "runner": {**asdict(self.runner), "master": self.master or self.runner.master},
            "versions": versions(),
            "hash_seed": hash_seed(),
            "host": socket.gethostname(),
            "started_at": self.started,
            "resumed_at": self.resumed,
            "finished_at": now() if ended else None,
            "waves": outcome.waves,
            "failures": [asdict(failure) for failure in outcome.failures],
            "warnings": warnings(outcome) if ended else outcome.warnings,
            "summary": {
                **report.summary_data(outcome.summary, self.replay(directory)),
                **(self.source_data(directory) if ended else {}),
            },
        }

    def source_data(self, directory: Path) -> dict[str, Any]:
        """The gains of each round, or the result of each search; empty for a plain plan."""
        if self.search is not None:
            return {"search": report.search_data(self.search.programs)}
        return (
            {}
            if self.rounds is None
            else {"rounds": report.rounds_data(self.rounds.gains(directory))}
        )

    def replay(self, directory: Path) -> report.ReplayCommand:
        """The function from a signature's group to the command line that replays it."""
        registry = self.runner.registry
        module = self.job.options.module
        return lambda group: replay_command(
            record_path(directory, group.signature), registry, module
        )

    def resume_command(self, directory: Path) -> str:
        """The command line that goes on with this run; its user trusts what it names."""
        return resume_command(directory, *([OPTION] if from_elsewhere(self.command) else []))

    def proofs(self) -> str:
        """The number of programs that were searched to their end, in words."""
        if self.search is None:
            return ""
        programs = self.search.programs.values()
        exhausted = sum(bool(searched.exhausted) for searched in programs)
        return f"; {exhausted:,} of {counted(len(programs), 'program')} exhausted"

    def against(self, outcome: Outcome) -> str:
        """The new and the known signatures, in words; "" without a baseline."""
        return f"; {self.baseline.sentence(outcome.summary.groups)}" if self.baseline else ""

    def print(self, store: RunStore, outcome: Outcome, *, as_json: bool) -> None:
        replay = self.replay(store.directory)
        directory = short_path(store.directory)
        if as_json:
            data = {
                "run_id": self.job.run_id,
                "build_id": self.job.build_id,
                "status": outcome.status,
                "exit_code": exit_code(outcome, self.baseline),
                "directory": directory,
                "seconds": round(outcome.seconds, 3),
                "planned": self.planned,
                "failures": [asdict(failure) for failure in outcome.failures],
                "warnings": warnings(outcome),
                **report.summary_data(outcome.summary, replay),
                "core_time": {}
                if outcome.earlier
                else exposure.shares(outcome.summary, self.cores, outcome.seconds),
                **self.source_data(store.directory),
                **baseline_data(outcome.summary.groups, self.baseline),
            }
            echo(json.dumps(data, indent=2))
            return
        console = new_console()
        report.print_summary(console, outcome.summary, replay)
        if self.rounds is not None and outcome.summary.trials:
            gains = self.rounds.gains(store.directory)
            print_table(console, report.rounds_table(gains), ROUNDS_OPTIONAL)
        if self.search is not None:
            console.print(report.search_table(self.search.programs))
        lines = [*warnings(outcome), *(f"failed: {failure}" for failure in outcome.failures)]
        for failure in outcome.failures:
            if failure.chunk:
                command = search_command(failure.chunk, self.plan.options, self.runner.registry)
                lines.append(f"  which seed of it: {command}")
        if outcome.status != "finished":
            lines.append(f"go on with: {self.resume_command(store.directory)}")
        # Trials of an earlier process took time that is not known here.
        if not outcome.earlier:
            spent = exposure.sentence(outcome.summary, self.cores, outcome.seconds)
            lines += [spent] if spent else []
        lines.append(
            f"{verdict(self.plan.options, outcome, self.planned, self.clock.seconds)}"
            f"{self.proofs()}{self.against(outcome)}; results in {directory}"
        )
        for text in lines:
            console.print(text, soft_wrap=True, highlight=False, markup=False)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def warnings(outcome: Outcome) -> list[str]:
    """The warnings of the runner, and one about idle trials."""
    idle = outcome.summary.counts.warning()
    return [*outcome.warnings, *([idle] if idle else [])]


def exit_code(outcome: Outcome, baseline: Baseline | None = None) -> int:
    code = of_run(outcome.status, verdict_against(outcome.summary, baseline))
    return signals.code() if code == INTERRUPTED else code


def versions() -> dict[str, str]:
    """The versions of the software that made the results."""
    found = {"python": platform.python_version()}
    for name in ("pulsar_ml", "pyspark", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found

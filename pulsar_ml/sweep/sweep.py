"""Runs one sweep from its options to its exit code."""

from __future__ import annotations

import os
import secrets
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.local.suites import choose_suites, load_suites
from pulsar_ml.campaign.plan import probe
from pulsar_ml.campaign.run.resume import past_of, read_facts
from pulsar_ml.campaign.store.baseline import baseline_of
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.without_pandas import arrow_without_pandas
from pulsar_ml.distributed.driver import check_spark
from pulsar_ml.distributed.session import PAGES, check_master, packed
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.testing.known import today
from pulsar_ml.sweep.display import Display
from pulsar_ml.sweep.forever import EndlessOptions
from pulsar_ml.sweep.options import (
    DRIVER,
    NOT_KEPT,
    SPARK,
    RunnerOptions,
    SweepOptions,
    check,
    from_elsewhere,
)
from pulsar_ml.sweep.planning import plan_sweep
from pulsar_ml.sweep.run import Sweep
from pulsar_ml.sweep.runners import effective_master
from pulsar_ml.terminal.console import new_console
from pulsar_ml.terminal.hash_seed import restart_under
from pulsar_ml.terminal.stop_request import StopRequest
from pulsar_ml.terminal.trust import check_trusted


def sweep(options: SweepOptions) -> int:
    """Runs a sweep, or goes on with one, prints its summary, and returns its exit code.

    Raises ``UsageError`` before anything runs, and other errors of this package when it fails.
    """
    check(options)
    arrow_without_pandas()
    baseline = baseline_of(options.baseline, today()) if options.baseline else None
    resume, out = options.resume, options.out
    if options.forever and resume is None and out is not None and (out / "run.json").exists():
        resume = out  # the same command goes on
    if options.resume is not None:
        check_resumed(options, options.resume)
    if resume is not None:
        restart_under(str(read_facts(resume).get("hash_seed", "")))
    past = None if resume is None else past_of(resume)
    try:
        if options.master:
            check_master(options.master)
        runner = runner_options(options)
        suites = choose_suites(load_suites(options.suites), options.suite)
        options = replace(options, module=absolute(options.native_module))
        trial = options.trial_options()
        build_id = probe.check(suites, trial)
        for name in options.strategies[1:]:
            probe.check(suites, replace(trial, strategy=name))
        now = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
        run_id = past.facts["run_id"] if past else now
        job = Job(run_id, build_id, trial, options.limits())
        planned = plan_sweep(options, suites, job, past)
        if options.runner == SPARK:
            check_spark(effective_master(runner), options.environment)
        elif options.environment is not None:
            packed(options.environment, options.master or "")
        endless = None
        if options.forever:
            endless = EndlessOptions(
                options.report_every, options.witnesses, options.waves, options.chunk_seconds
            )
        one = Sweep(
            planned, suites, job, runner, kept_options(options), endless=endless,
            seconds=options.seconds, open_ended=options.open_ended, baseline=baseline,
        )  # fmt: skip
        file = options.progress_file
        display = Display(new_console(stderr=True), kind=options.progress, file=file)
    except BaseException:
        if past is not None:
            past.store.close()
        raise
    with closing(display), StopRequest() as stop:
        target = past or out or Path("runs") / run_id
        return one.run(target, display, stop, options.wave_seconds, as_json=options.as_json)


def check_resumed(options: SweepOptions, run: Path) -> None:
    """Raises UsageError when the file of a resumed run chooses code, and nobody trusts it."""
    named = from_elsewhere(read_facts(run).get("command", {}))
    by_file = {
        name: value
        for name, value in named.items()
        if name.removeprefix("--") not in options.on_command_line
    }
    check_trusted(run / "run.json", by_file, trust=options.trust)


def runner_options(options: SweepOptions) -> RunnerOptions:
    """The runner's options; those of Spark have no effect elsewhere."""
    spark = options.runner == SPARK
    settings: dict[str, str] = {}
    for pair in options.conf:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--conf takes KEY=VALUE, not {pair!r}")
        settings[key] = value
    return RunnerOptions(
        runner=options.runner,
        master=options.master,
        conf={**(PAGES if options.ui else {}), **settings},
        workers=options.workers,
        cpus=options.task_cpus,
        registry=options.suites,
        environment=None if options.environment is None else str(options.environment),
        master_seconds=options.master_seconds,
        rows=options.rows if spark else DRIVER,
        task_seconds=options.chunk_seconds if options.chunk_size is None else 0.0,
        speculate=options.speculate and spark,
    )


def kept_options(options: SweepOptions) -> dict[str, Any]:
    """The options that run.json keeps, for the command that goes on."""
    content = {
        name: getattr(options, name)
        for name in SweepOptions.__dataclass_fields__
        if name not in NOT_KEPT
    }
    return {
        name: str(value) if isinstance(value, Path) else value for name, value in content.items()
    }


def absolute(module: str) -> str:
    """A module's name, or the absolute path of a .so file."""
    return os.path.abspath(module) if module.endswith(".so") or "/" in module else module

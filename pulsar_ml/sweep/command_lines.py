"""Command lines of ``python -m stress`` for what a sweep found, as they work where it was started."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store import summary as report
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.store.store import record_path
from pulsar_ml.campaign.trial.trial import CONTROLLED, PRODUCT, TrialOptions

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = "pulsar_ml.suites.registry"  # the project's own suites


def replay_command(directory: Path, registry: str) -> Callable[[Group], str]:
    """The command line that replays a group's record, of its smallest seed."""
    stress = stress_command(registry)

    def command(group: Group) -> str:
        return stress(f"replay {shlex.quote(here(record_path(directory, group.signature)))}")

    return command


def resume_command(directory: Path, registry: str) -> str:
    """The command line that goes on with the run in a directory."""
    return app_command("spark.sweep", registry)(f"--resume {shlex.quote(here(directory))}")


def here(path: Path) -> str:
    """A path as commands that are completed here need it."""
    return report.short_path(path) if Path.cwd() == ROOT else os.path.abspath(path)


def stress_command(registry: str) -> Callable[[str], str]:
    """Completes a command of ``python -m stress`` so that it works in the current directory."""
    return app_command("stress", registry)


def app_command(app: str, registry: str) -> Callable[[str], str]:
    """Completes a command of ``python -m APP`` so that it works in the current directory.

    The suites are not installed, so elsewhere than in the checkout it has to change there.
    """
    options = "" if registry == REGISTRY else f" --suites {registry}"
    if Path.cwd() == ROOT:
        return lambda command: f"{report.python_command()} -m {app}{options} {command}"
    python = shlex.quote(os.path.abspath(sys.executable))
    return lambda command: f"(cd {shlex.quote(str(ROOT))} && {python} -m {app}{options} {command})"


def search_command(chunk: Chunk, options: TrialOptions, registry: str) -> str:
    """The command line that runs the seeds of a chunk one by one, to find the one that crashes."""
    if options.engine == CONTROLLED:
        return sweep_command(chunk, options, registry)
    given = {
        "--threads": options.threads,
        "--operations": options.operations,
        "--module": None if options.module == PRODUCT else shlex.quote(options.module),
        "--mutant": options.mutant and shlex.quote(options.mutant),
    }
    pairs = [f" {name} {value}" for name, value in given.items() if value is not None]
    noise = "" if options.noise else " --no-noise"
    command = (
        f"run {chunk.suite} --seed {chunk.seed_lo} --programs {len(chunk)}{''.join(pairs)}{noise}"
    )
    return stress_command(registry)(command)


def sweep_command(chunk: Chunk, options: TrialOptions, registry: str) -> str:
    """The same for the engine: a sweep over the chunk, with a chunk for each seed."""
    given = {
        "--threads": options.threads,
        "--operations": options.operations,
        "--module": shlex.quote(options.module),
        "--mutant": options.mutant and shlex.quote(options.mutant),
        "--mode": options.mode,
        "--strategy": chunk.strategy or options.strategy,
        "--executions": options.executions,
    }
    pairs = [f" {name} {value}" for name, value in given.items() if value is not None]
    return app_command("spark.sweep", registry)(
        f"--engine controlled --runner pool --suite {chunk.suite} --first-seed {chunk.seed_lo} "
        f"--seeds {len(chunk)} --chunk-size 1{''.join(pairs)}"
    )

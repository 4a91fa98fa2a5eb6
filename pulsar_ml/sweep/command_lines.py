"""Command lines that a sweep prints: to go on, and to find the seed that crashes."""

from __future__ import annotations

from pathlib import Path

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.trial.trial import CONTROLLED, PRODUCT, TrialOptions
from pulsar_ml.terminal.command_line import command_line, short_path, suites_words


def resume_command(directory: Path) -> str:
    """The command line that goes on with the run in a directory."""
    return command_line("sweep", "--resume", short_path(directory))


def search_command(chunk: Chunk, options: TrialOptions, registry: str) -> str:
    """The command line that runs the seeds of a chunk one by one, to find the one that crashes."""
    controlled = options.engine == CONTROLLED
    values = {
        "--seed": chunk.seed_lo,
        "--seeds": len(chunk),
        "--threads": options.threads,
        "--operations": options.operations,
        "--module": None if options.module == PRODUCT else options.module,
        "--mutant": options.mutant,
    }
    words = [word for name, value in values.items() if value for word in (name, str(value))]
    words = [*([] if chunk.seed_lo else ["--seed", "0"]), *words, *suites_words(registry)]
    if not controlled:
        return command_line("run", chunk.suite, *words, *([] if options.noise else ["--no-noise"]))
    search = {
        "--mode": options.mode,
        "--strategy": chunk.strategy or options.strategy,
        "--executions": options.executions,
    }
    words += [word for name, value in search.items() if value for word in (name, str(value))]
    return command_line(
        "sweep", "--suite", chunk.suite, "--engine", CONTROLLED, "--runner", "pool",
        "--chunk-size", "1", *words,
    )  # fmt: skip

"""What the options of a sweep ask for: its suites, their pieces, rounds or a search; and which of them
contradict each other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pulsar_ml.campaign.plan import probe
from pulsar_ml.campaign.plan.pace import CHUNKS_PER_TASK
from pulsar_ml.campaign.plan.plan import Plan, pieces_of_seconds, pieces_of_size
from pulsar_ml.campaign.plan.rounds import FLOOR, Rounds
from pulsar_ml.campaign.run.resume import Past, digest_of
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CONTROLLED
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.search.child import Limits

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Exhaustive

ONLY_FOREVER = {"waves": "--waves", "report_every": "--report-every", "witnesses": "--witnesses"}


def check_forever(context: click.Context, forever: bool) -> None:
    """``UsageError`` for options that contradict each other."""
    given = {
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if forever and "seeds" in given:
        raise UsageError(
            "--forever has no last seed and takes no --seeds; --first-seed says where it begins"
        )
    for name, option in ONLY_FOREVER.items():
        if not forever and name in given:
            raise UsageError(f"{option} is for --forever")


def check_endless(strategies: Sequence[str], rounds: int | None, *, exhaust: bool) -> None:
    """``UsageError`` for what a sweep without an end cannot do."""
    if rounds is not None or len(strategies) > 1:
        raise UsageError(
            "--forever has no rounds and one strategy; --rounds and several are for a number of seeds"
        )
    if exhaust:
        raise UsageError(
            "--forever goes on for ever, --exhaust comes to an end; leave one of them out"
        )


def check_same_end(past: Past, forever: bool) -> None:
    """``UsageError`` unless both the run and the command are without an end, or neither."""
    without = bool(past.facts.get("command", {}).get("forever"))
    if without and not forever:
        raise UsageError(
            f"{past.store.directory} is a run without an end; go on with it by --forever"
        )
    if forever and not without:
        raise UsageError(f"{past.store.directory} is a run with an end; leave --forever out")


def size_of_seconds(trial_seconds: float, chunk_seconds: float) -> int:
    """Seeds of a chunk that takes about ``chunk_seconds``."""
    if not chunk_seconds > 0:
        raise UsageError(f"a chunk takes more than 0 seconds, not {chunk_seconds}")
    return max(1, round(chunk_seconds / trial_seconds))


def check_same(
    past: Past,
    plan: Plan,
    rounds: Rounds | None,
    search: Exhaustive | None,
    build_id: str,
    suites: Sequence[Suite],
    out: Path | None,
) -> None:
    """``UsageError`` unless the command is about the very run that is to go on."""
    run = past.store.directory
    if out is not None and out.resolve() != run.resolve():
        raise UsageError(f"--resume goes on in {run}; --out {out} is another directory")
    if past.facts["build_id"] != build_id:
        raise UsageError(
            f"{run} is a run of build {past.facts['build_id']}, and {plan.options.module} is build "
            f"{build_id}; results of two builds are never mixed: go on with that build, or start another run"
        )
    parted = rounds.difference(past.rounds) if rounds else "it has rounds" if past.rounds else ""
    searched = (
        search.difference(past.search)
        if search
        else "it is searched to its end"
        if past.search
        else ""
    )
    if difference := plan.difference(past.plan) or parted or searched:
        raise UsageError(
            f"{run} is a run of another plan: {difference}; leave that out, or start another run"
        )
    if past.facts.get("suites") != digest_of(suites):
        raise UsageError(f"the suites have changed since {run} was begun; start another run")


def chosen_suites(registry: str, names: Sequence[str]) -> list[Suite]:
    """The named suites in the order given, or all. Raises ``UsageError`` for what does not exist."""
    try:
        suites: dict[str, Suite] = import_module(registry).SUITES
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"--suites needs a module with SUITES, and {registry} is none: {error}"
        ) from error
    if not suites:
        raise UsageError(f"{registry} has no suite")
    for name in names:
        if name not in suites:
            raise UsageError(f"there is no suite {name!r}; there are: {', '.join(sorted(suites))}")
    return [suites[name] for name in dict.fromkeys(names or suites)]


def cut(
    suites: Sequence[Suite],
    job: Job,
    first_seed: int,
    seeds: int,
    chunk_size: int | None,
    chunk_seconds: float,
) -> int:
    """Pieces of each suite's range: from ``--chunk-size``, or from the time that a trial takes here."""
    if chunk_size is not None:
        return pieces_of_size(seeds, chunk_size)
    spread = -(
        -4 * (os.cpu_count() or 1) // len(suites)
    )  # so that even a short sweep feeds each core
    seconds = chunk_seconds / CHUNKS_PER_TASK
    return pieces_of_seconds(seeds, probe.measure(suites, first_seed, job), seconds, spread)


def limits(seconds: float, memory: int, address_space: int) -> Limits:
    return Limits(wall=seconds, cpu=None, memory=memory << 20, address_space=address_space << 20)


def of_engine(engine: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the engine that were given. ``UsageError`` when there is no engine to take them."""
    told = {name: value for name, value in given.items() if value is not None}
    if told and engine != CONTROLLED:
        raise UsageError(
            f"--{next(iter(told))} is for --engine {CONTROLLED}; real threads have none"
        )
    return told


def of_spark(context: click.Context, runner: str, rows: str, speculate: bool) -> tuple[str, bool]:
    """What is left of these options without Spark. ``UsageError`` when they were given with the command."""
    told = {
        "rows": f"--rows {rows}" if rows != "driver" else "",
        "speculate": "--speculate" if speculate else "",
    }
    for name, words in told.items():
        if words and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{words} is for --runner spark, not for {runner}")
    return "driver", False


def in_rounds(
    plan: Plan, strategies: Sequence[str], rounds: int | None, floor: float | None
) -> Rounds | None:
    """The rounds that were asked for, if any; several strategies without a number are one round."""
    if rounds is None and len(strategies) > 1:
        rounds = 1
    if rounds is None:
        if floor is not None:
            raise UsageError(
                f"--floor {floor} is for --rounds; without rounds each suite gets the same"
            )
        return None
    own = (plan.options.strategy,) if plan.options.engine == CONTROLLED else ()
    return Rounds(plan, tuple(strategies) or own, rounds, FLOOR if floor is None else floor)


def in_parts(
    plan: Plan, parts: int | None, *, exhaust: bool, rounds: Rounds | None
) -> Exhaustive | None:
    """The search to the end, if it was asked for."""
    if not exhaust:
        if parts is not None:
            raise UsageError(
                f"--parts {parts} is for --exhaust; without it a program is searched in one part"
            )
        return None
    if rounds is not None:
        raise UsageError(
            "--exhaust searches everything with one strategy; --rounds and several are for the rest"
        )
    if plan.options.engine != CONTROLLED:
        raise UsageError(
            f"--exhaust is for --engine {CONTROLLED}; real threads cannot be searched to their end"
        )
    from pulsar_ml.campaign.plan.exhaustive import PARTS, Exhaustive

    return Exhaustive(plan, PARTS if parts is None else parts)


def all_strategies() -> tuple[str, ...]:
    """All that the engine offers."""
    from pulsar_ml.campaign.trial.controlled import OFFERED

    return OFFERED


def setting(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key:
        raise UsageError(f"--conf takes KEY=VALUE, not {pair!r}")
    return key, value


def is_path(module: str) -> bool:
    return module.endswith(".so") or "/" in module

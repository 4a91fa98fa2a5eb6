"""The plan of a sweep from its options: chunks, rounds or a search; or that of an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pulsar_ml.campaign.plan import probe
from pulsar_ml.campaign.plan.endless import plan_without_end
from pulsar_ml.campaign.plan.pace import CHUNKS_PER_TASK
from pulsar_ml.campaign.plan.plan import Plan, pieces_of_seconds, pieces_of_size
from pulsar_ml.campaign.plan.rounds import Rounds
from pulsar_ml.campaign.run.resume import Past, digest_of
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.processors import processor_count
from pulsar_ml.sweep.options import SweepOptions, floor_of

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Exhaustive


@dataclass(frozen=True, slots=True)
class Planned:
    """The chunks of a sweep: a plan, and what refines it."""

    plan: Plan
    rounds: Rounds | None = None
    search: Exhaustive | None = None


def plan_sweep(
    options: SweepOptions, suites: Sequence[Suite], job: Job, past: Past | None
) -> Planned:
    """The plan of a new sweep, or that of an earlier run. UsageError when that is another one."""
    names = tuple(suite.name for suite in suites)
    count = options.seed_count
    if past and "seeds" not in options.on_command_line:
        count = past.plan.seeds
    base = Plan(names, options.seed, 1 if options.forever else count, 1, job.options)
    if past and options.chunk_size is None:
        plan = replace(base, seeds=past.plan.seeds if options.forever else count)
        plan = replace(plan, pieces=min(past.plan.pieces, plan.seeds))
    elif options.forever:
        size = options.chunk_size
        if size is None:
            trial = probe.measure(suites, options.seed, job)
            size = max(1, round(options.chunk_seconds / trial))
        plan = plan_without_end(names, options.seed, size, job.options)
    elif options.exhaust:
        plan = replace(base, pieces=count)
    else:
        plan = replace(base, pieces=cut(options, suites, job, count))
    planned = Planned(plan, in_rounds(options, plan), in_parts(options, plan))
    if past is None:
        return planned
    check_same_end(past, options.forever)
    check_same(past, planned, job, suites, options)
    return replace(planned, rounds=past.rounds, search=past.search)


def cut(options: SweepOptions, suites: Sequence[Suite], job: Job, seeds: int) -> int:
    """Pieces of each suite's range: from ``--chunk-size``, or from the time of a trial here."""
    if options.chunk_size is not None:
        return pieces_of_size(seeds, options.chunk_size)
    # At least four chunks for each core, so that a short sweep uses all cores.
    spread = -(-4 * processor_count() // len(suites))
    seconds = options.chunk_seconds / CHUNKS_PER_TASK
    return pieces_of_seconds(seeds, probe.measure(suites, options.seed, job), seconds, spread)


def in_rounds(options: SweepOptions, plan: Plan) -> Rounds | None:
    """The requested rounds, if any; several strategies without a number are one round."""
    strategies, rounds = options.strategies, options.rounds
    if rounds is None and len(strategies) < 2:
        return None
    own = (plan.options.strategy,) if options.controlled else ()
    count = 1 if rounds is None else rounds
    return Rounds(plan, strategies or own, count, floor_of(options), guided=options.guided)


def in_parts(options: SweepOptions, plan: Plan) -> Exhaustive | None:
    """The exhaustive search, if it was requested."""
    if not options.exhaust:
        return None
    from pulsar_ml.campaign.plan.exhaustive import PARTS, Exhaustive

    return Exhaustive(plan, PARTS if options.parts is None else options.parts)


def check_same_end(past: Past, forever: bool) -> None:
    """UsageError unless both the run and the command are endless, or neither."""
    endless = bool(past.facts.get("command", {}).get("forever"))
    if endless and not forever:
        raise UsageError(
            f"{past.store.directory} is a run without an end; go on with it by --forever"
        )
    if forever and not endless:
        raise UsageError(f"{past.store.directory} is a run with an end; leave --forever out")


def check_same(
    past: Past, planned: Planned, job: Job, suites: Sequence[Suite], options: SweepOptions
) -> None:
    """UsageError unless the command is about the run that should go on."""
    run, plan, out = past.store.directory, planned.plan, options.out
    if out is not None and out.resolve() != run.resolve():
        raise UsageError(f"--resume goes on in {run}; --out {out} is another directory")
    if past.facts["build_id"] != job.build_id:
        raise UsageError(
            f"{run} is a run of build {past.facts['build_id']}, and {plan.options.module} is build "
            f"{job.build_id}; results of two builds are never mixed: use that build, or start "
            "another run"
        )
    rounds, search = planned.rounds, planned.search
    other_rounds = rounds.difference(past.rounds) if rounds else "it has rounds" * bool(past.rounds)
    other_search = (
        search.difference(past.search)
        if search
        else "it is searched to its end" * bool(past.search)
    )
    if difference := plan.difference(past.plan) or other_rounds or other_search:
        raise UsageError(
            f"{run} is a run of another plan: {difference}; leave that out, or start another run"
        )
    if past.facts.get("suites") != digest_of(suites):
        raise UsageError(f"the suites have changed since {run} was begun; start another run")

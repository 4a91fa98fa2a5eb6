"""The sentences of a sweep: its headline, its rounds, its verdict."""

from __future__ import annotations

from pulsar_ml.campaign.plan.rounds import Round, Rounds
from pulsar_ml.campaign.run.waves import Outcome
from pulsar_ml.campaign.trial.engines import is_controlled
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.terminal.progress import clock
from pulsar_ml.wording import counted

SHOWN_ARMS = 8  # of a round that begins


def shares(decided: Round) -> str:
    """The trials of a round by suite and strategy, the largest parts first."""
    parts = sorted(decided.parts, key=lambda part: (-len(part), part.arm))
    rest = parts[SHOWN_ARMS:]
    words = [f"{part.arm} {len(part):,}" for part in parts[:SHOWN_ARMS]]
    if rest:
        words.append(f"{len(rest)} others {sum(map(len, rest)):,}")
    return f"{', '.join(words)} trials"


def engine_words(options: TrialOptions, rounds: Rounds | None = None) -> str:
    """The engine of the trials, in words."""
    if not is_controlled(options):
        return "real threads"
    strategies = rounds.strategies if rounds else (options.strategy,)
    noun = "strategies" if len(strategies) > 1 else "strategy"
    return (
        f"engine controlled (mode {options.mode}, {noun} {', '.join(strategies)}, "
        f"{options.executions:,} executions each)"
    )


def verdict(
    options: TrialOptions, outcome: Outcome, planned: int | None, seconds: float | None = None
) -> str:
    """The last line of a sweep: how it ended and what that means.

    ``planned`` is None for a sweep without a number of trials. ``seconds`` is the time after which
    the clock stopped it.
    """
    summary = outcome.summary
    counts = summary.counts
    status = outcome.status
    if status == "stopped" and seconds is not None:
        status = f"stopped after {seconds:g} s"
    if not summary.trials:
        none = "no trial" if planned is None else f"none of {planned:,} trials"
        return f"{status}: {none} came to its end"
    ran = (
        f"{summary.trials:,} trials"
        if planned is None
        else f"{summary.trials:,} of {planned:,} trials"
    )
    ran += f" ({counts.trials_text()})"
    if is_controlled(options):
        ran += f" with {counts.executions_text()}"
    if counts.judged:
        ran += f", {counts.histories_text()}"
    ran += f" in {clock(outcome.seconds)}"
    match summary.verdict:
        case "violation":
            signatures = counted(len(summary.groups), "signature")
            found = f"{counted(summary.violations, 'violation')} with {signatures}"
        case "nothing_exercised":
            found = f"nothing exercised by {', '.join(summary.idle_suites)}, which proves nothing"
        case _:
            found = "no violation"
    return f"{status}: {found} in {ran}"

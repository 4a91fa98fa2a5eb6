"""The history of a project: its runs side by side, with their rates, coverage and signatures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.read_run import SavedRun, open_run
from pulsar_ml.campaign.store.schema import TRIALS, VIOLATIONS
from pulsar_ml.errors import UsageError
from pulsar_ml.wording import counted

MOST_RUNS = 200  # the newest ones
MOST_SIGNATURES = 1_000  # of a report
MOST_TEXT = 300  # characters of a message
NORMAL = 1.959963984540054  # standard errors of an interval with 95 % confidence
NEW, KNOWN, GONE, NOT_RUN = "new", "known", "gone", "not run"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Seen:
    """The violations of one signature in one run."""

    suite: str
    invariant: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class PastRun:
    """The totals of one run; ``trials`` are by suite."""

    run_id: str
    started: datetime
    build_id: str
    status: str
    trials: dict[str, int]
    violating: int
    executions: int
    classes: int
    seen: dict[str, Seen]  # by signature

    @property
    def all_trials(self) -> int:
        return sum(self.trials.values())


@dataclass(frozen=True, slots=True)
class Fate:
    """A signature over all runs, the last one being the run of the report."""

    signature: str
    seen: Seen
    status: str
    first: str  # the run that found it first
    runs: int  # that found it
    before: tuple[int, int]  # violations and trials of its suite in earlier runs
    now: tuple[int, int]

    @property
    def missed(self) -> float | None:
        """The chance that a gone failure was only missed: None for another status."""
        count, trials = self.before
        if self.status != GONE or not trials:
            return None
        return float((1 - min(1.0, count / trials)) ** self.now[1])


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Runs in the order of their start; ``later`` counts those behind the report's run."""

    runs: list[PastRun] = field(default_factory=list)
    later: int = 0
    left_out: int = 0  # older than the newest MOST_RUNS

    def fates(self) -> list[Fate]:
        """All signatures: new, gone, known, and those whose suites did not run."""
        *earlier, last = self.runs
        order = (NEW, GONE, KNOWN, NOT_RUN)
        found = {signature for run in self.runs for signature in run.seen}
        fates = [fate_of(signature, earlier, last) for signature in sorted(found)]
        return sorted(fates, key=lambda one: (order.index(one.status), one.seen.suite))

    def changes(self) -> list[tuple[int, int, int]]:
        """For each run: signatures that no earlier run has, that one has, and that are gone.

        A signature is gone when the run before has it, and its suite ran again without it.
        """
        rows = []
        known: set[str] = set()
        before: dict[str, Seen] = {}
        for run in self.runs:
            mine = set(run.seen)
            gone = [name for name in before.keys() - mine if run.trials.get(before[name].suite)]
            rows.append((len(mine - known), len(mine & known), len(gone)))
            known |= mine
            before = run.seen
        return rows


def fate_of(signature: str, earlier: list[PastRun], last: PastRun) -> Fate:
    finders = [run for run in (*earlier, last) if signature in run.seen]
    seen = finders[-1].seen[signature]
    now = last.trials.get(seen.suite, 0)
    if signature in last.seen:
        status = NEW if len(finders) == 1 else KNOWN
    else:
        status = GONE if now else NOT_RUN
    count = sum(run.seen[signature].count for run in earlier if signature in run.seen)
    trials = sum(run.trials.get(seen.suite, 0) for run in earlier)
    mine = last.seen[signature].count if signature in last.seen else 0
    return Fate(
        signature, seen, status, finders[0].run_id, len(finders), (count, trials), (mine, now)
    )


def interval(count: int, trials: int) -> tuple[float, float]:
    """Wilson's interval of a rate, with 95 % confidence; 0 to 1 without trials."""
    if not trials:
        return 0.0, 1.0
    rate, square = count / trials, NORMAL**2
    middle = rate + square / (2 * trials)
    half = NORMAL * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials**2))
    scale = 1 + square / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def read_history(
    paths: Iterable[Path], last: SavedRun, on_rows: Callable[[int], object] = lambda rows: None
) -> RunHistory:
    """The history that ends with the run ``last``; ``paths`` are runs, or folders of runs.

    UsageError for a path without a run, BadRecordError for a damaged run.
    """
    directories = {last.directory.resolve(): last}
    for path in paths:
        for directory in runs_below(path):
            directories.setdefault(directory.resolve(), open_run(directory))
    ordered = sorted(
        directories.values(), key=lambda run: (started_at(run), run is last, name_of(run))
    )
    place = ordered.index(last)
    kept = ordered[max(0, place + 1 - MOST_RUNS) : place + 1]
    runs = [past_run(run, on_rows) for run in kept]
    return RunHistory(runs, len(ordered) - place - 1, place + 1 - len(kept))


def runs_below(path: Path) -> Iterator[Path]:
    if (path / "run.json").exists():
        yield path
        return
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory; give a results directory or a folder of them")
    found = [one for one in sorted(path.iterdir()) if (one / "run.json").exists()]
    if not found:
        raise UsageError(f"{path} has no results directories; a run has a file run.json")
    yield from found


def name_of(run: SavedRun) -> str:
    return str(run.facts["run_id"] or run.directory.name)


def started_at(run: SavedRun) -> datetime:
    try:
        found = datetime.fromisoformat(run.facts["started_at"])
    except ValueError:
        return EPOCH
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def past_run(run: SavedRun, on_rows: Callable[[int], object]) -> PastRun:
    summary = Summary()
    for batch in run.trials():
        add(summary, batch, VIOLATIONS.empty_table())
        on_rows(len(batch))
    for batch in run.violations():
        add(summary, TRIALS.empty_table(), batch)
        on_rows(len(batch))
    groups = summary.in_order()[:MOST_SIGNATURES]
    return PastRun(
        run_id=name_of(run),
        started=started_at(run),
        build_id=run.facts["build_id"],
        status=run.facts["status"],
        trials={name: totals.trials for name, totals in summary.suites.items()},
        violating=sum(totals.violation for totals in summary.suites.values()),
        executions=summary.executions,
        classes=summary.classes,
        seen={
            group.signature: Seen(
                group.suite, group.invariant, group.message[:MOST_TEXT], group.count
            )
            for group in groups
        },
    )


# For readers ------------------------------------------------------------------------------------


def run_rows(history: RunHistory) -> list[dict[str, Any]]:
    """The runs for a table: plain data, also for JSON."""
    rows = []
    for run, (new, known, gone) in zip(history.runs, history.changes(), strict=True):
        low, high = interval(run.violating, run.all_trials)
        rows.append(
            {
                "run_id": run.run_id,
                "started_at": "" if run.started == EPOCH else f"{run.started:%Y-%m-%d %H:%M}",
                "build_id": run.build_id,
                "status": run.status,
                "trials": run.all_trials,
                "violating": run.violating,
                "failing_per_thousand": per_thousand(run.violating, run.all_trials),
                "low": 1000 * low,
                "high": 1000 * high,
                "executions": run.executions,
                "classes": run.classes,
                "new": new,
                "known": known,
                "gone": gone,
            }
        )
    return rows


def fate_rows(history: RunHistory) -> list[dict[str, Any]]:
    """The signatures for a table: plain data, also for JSON."""
    return [
        {
            "signature": fate.signature,
            "status": fate.status,
            "suite": fate.seen.suite,
            "invariant": fate.seen.invariant,
            "message": fate.seen.message,
            "first_run": fate.first,
            "runs": fate.runs,
            "before_per_thousand": per_thousand(*fate.before),
            "now_per_thousand": per_thousand(*fate.now),
            "chance_missed": fate.missed,
        }
        for fate in history.fates()[:MOST_SIGNATURES]
    ]


def figure(value: float | None) -> str:
    """A rate of a thousand with two or three digits, or a dash."""
    if value is None:
        return "-"
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def per_thousand(count: int, trials: int) -> float | None:
    return 1000 * count / trials if trials else None


def sentences(history: RunHistory) -> list[str]:
    """Sentences about the changes, and about what the history leaves out."""
    fates = history.fates()
    counts = {name: sum(one.status == name for one in fates) for name in (NEW, KNOWN, GONE)}
    lines = [
        f"{counted(len(history.runs), 'run')}; of the signatures in the last one {counts[NEW]:,} new and "
        f"{counts[KNOWN]:,} known; {counts[GONE]:,} gone."
    ]
    missed = [one.signature for one in fates if (one.missed or 0) > 0.05]
    if missed:
        more = f" and {len(missed) - 5:,} more" if len(missed) > 5 else ""
        lines.append(
            "Gone may mean missed: at its earlier rate, this many trials miss "
            f"{', '.join(missed[:5])}{more} with a chance above 5 %."
        )
    if history.later:
        lines.append(f"Left out: {counted(history.later, 'later run')}.")
    if history.left_out:
        lines.append(f"Left out: {counted(history.left_out, 'run')} before these.")
    return lines


def as_data(history: RunHistory) -> dict[str, Any]:
    return {
        "sentences": sentences(history),
        "runs": run_rows(history),
        "signatures": fate_rows(history),
    }


WIDTH, HEIGHT = 600, 120
FEWEST_POINTS = 3  # of a chart


def rate_chart(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The failing trials of each run with their intervals, in pixels; None for few runs."""
    shown = [row for row in rows if row["trials"]]
    if len(shown) < FEWEST_POINTS:
        return None
    top = max(row["high"] for row in shown)
    step = WIDTH / (len(shown) - 1)
    height = [
        {name: HEIGHT * (1 - row[key] / top) for name, key in HEIGHTS.items()} for row in shown
    ]
    return {
        "top": top,
        "points": [{"x": number * step, **one} for number, one in enumerate(height)],
        "first": shown[0],
        "last": shown[-1],
    }


HEIGHTS = {"rate": "failing_per_thousand", "low": "low", "high": "high"}


def coverage_chart(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The classes of each run under the engine, in pixels; None for few runs."""
    shown = [row for row in rows if row["executions"]]
    if len(shown) < FEWEST_POINTS:
        return None
    top = max(row["classes"] for row in shown) or 1
    step = WIDTH / (len(shown) - 1)
    points = " ".join(
        f"{number * step:.1f},{HEIGHT * (1 - row['classes'] / top):.1f}"
        for number, row in enumerate(shown)
    )
    return {"top": top, "points": points, "first": shown[0], "last": shown[-1]}


def page_data(history: RunHistory | None) -> dict[str, Any] | None:
    """The values of the page's section; None without a history."""
    if history is None:
        return None
    rows = run_rows(history)
    return {
        **as_data(history),
        "figure": figure,
        "rate_chart": rate_chart(rows),
        "coverage_chart": coverage_chart(rows),
    }

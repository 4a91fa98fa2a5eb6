"""Finds the step of a failing execution from which on other continuations fail as well.

At each switch between threads the steps before it are kept, and the rest is drawn anew some times
from fixed seeds. The share of these continuations that fail is a curve: it rises where the failure
becomes inevitable.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from pulsar_ml.harness.engine import CHOICES, Explorer
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.explore import NO_VERDICT
from pulsar_ml.harness.search.failure import Failure, replay_explorer
from pulsar_ml.harness.search.symbols import describe_pc
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

SAMPLES = 40  # continuations of each switch
MOST_POINTS = 60  # switches that are judged; of more, these are spread evenly
MOST_STEPS = 2_000_000  # of all continuations together, about
FEW = 10  # continuations of each switch in a report and in a replay
SWITCHES, STALE = 0.25, 0.5  # how often a continuation departs from the default at a choice
BEHIND = 400  # choices of each thread that are drawn; the rest has the default
BAR = 20  # characters of a share of 1
MARK = "== behind this switch the failure becomes inevitable =="
THREAD, READ = CHOICES.index("thread"), CHOICES.index("read")

Decision = tuple[int, int, int, int]
Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Share:
    """The continuations behind the first ``event`` steps of the trace.

    Attributes:
        thread, place: the thread that goes on there, and where its first access is.
        failed, judged: continuations that failed, and those that said something. A continuation
            that reached the step limit, or made other steps before ``event``, says nothing.
    """

    event: int
    thread: int
    place: str
    failed: int
    judged: int

    @property
    def value(self) -> float | None:
        return self.failed / self.judged if self.judged else None


def shares(
    failure: Failure,
    subject: Subject,
    judge: Judge | None = None,
    *,
    samples: int = SAMPLES,
    on_share: Callable[[int, int], object] = lambda done, switches: None,
) -> tuple[Share, ...]:
    """Judge continuations at each switch of ``failure``, which its replay must make again.

    ``judge`` is that of the replay: with it wrong answers are failures as well. Empty when the
    replay differs. A continuation may crash, so the caller wants a child process. ``on_share`` gets
    the number of switches that were judged and that of all, behind each of them. Of a long trace
    fewer switches are judged: all continuations together have about MOST_STEPS steps.
    """
    judge = judge or subject.judge
    again = failure.replay(subject, judge)
    if not again.exact:
        return ()
    trace = [event for event in again.trace if int(event["thread"]) >= 0]
    points = switches(trace, most_points(samples, len(trace)))
    curve = []
    for event in points:
        curve.append(share_at(failure, subject, judge, trace, event, samples))
        on_share(len(curve), len(points))
    return tuple(curve)


def most_points(samples: int, steps: int) -> int:
    """Return how many switches are judged of a trace with so many steps."""
    return max(2, min(MOST_POINTS, MOST_STEPS // max(1, samples * steps)))


def switches(trace: Sequence[Event], most: int = MOST_POINTS) -> list[int]:
    """The steps before which another thread was at work; of more than ``most``, evenly chosen."""
    found = [at for at in range(1, len(trace)) if trace[at]["thread"] != trace[at - 1]["thread"]]
    if len(found) <= most:
        return found
    return [found[number * len(found) // most] for number in range(most)]


def share_at(
    failure: Failure,
    subject: Subject,
    judge: Judge | None,
    trace: Sequence[Event],
    event: int,
    samples: int,
) -> Share:
    """Make ``samples`` continuations behind the first ``event`` steps."""
    reached = {int(step["thread"]): int(step["points"]) for step in trace[:event]}
    for one in reached:
        # A thread that was left has made the choice before its next step as well.
        reached[one] += one != int(trace[event - 1]["thread"])
    threads = len(Program.from_json(failure.program).threads)
    kept = [one for one in failure.decisions if one[0] <= reached.get(one[1], -1)]
    failed = judged = 0
    for number in range(samples):
        rng = random.Random(f"{event} {number}")
        drawn = continuation(rng, reached, threads, stale=failure.mode != "sc")
        explorer = replay_explorer(failure, subject, decisions=(*kept, *drawn))
        explorer.again(0)
        if not goes_on(explorer, trace, event):
            continue
        outcome = fails(explorer, judge)
        if outcome is not None:
            judged += 1
            failed += outcome
    thread = int(trace[event]["thread"])
    pcs = (int(step["pc"]) for step in trace[event:] if int(step["thread"]) == thread)
    return Share(event, thread, describe_pc(next(filter(None, pcs), 0)), failed, judged)


def continuation(
    rng: random.Random, reached: Mapping[int, int], threads: int, *, stale: bool
) -> list[Decision]:
    """Draw decisions of all threads behind the choices that each has ``reached``."""
    drawn: list[Decision] = []
    for thread in range(threads):
        first = reached.get(thread, -1) + 1
        for point in range(first, first + BEHIND):
            if rng.random() < SWITCHES:
                drawn.append((point, thread, THREAD, 1 + rng.randrange(threads)))
            if stale and rng.random() < STALE:
                drawn.append((point, thread, READ, 1 + rng.randrange(2)))
    return drawn


def goes_on(explorer: Explorer, trace: Sequence[Event], event: int) -> bool:
    """Return True if the execution has the first steps of the trace."""
    first = cast("list[dict[str, Any]]", explorer.trace())
    again = [step for step in first if int(step["thread"]) >= 0][:event]
    return list(map(same, again)) == list(map(same, trace[:event]))


def same(step: Event) -> tuple[Any, ...]:
    return step["thread"], step["pc"], step["op"], step["address"], step["value"]


def fails(explorer: Explorer, judge: Judge | None) -> bool | None:
    """Return True for a failure, and None for an execution without a verdict."""
    if explorer.failed():
        return None if explorer.end() in NO_VERDICT else True
    if explorer.end() != "complete":
        return None
    return bool(judge(explorer)) if judge is not None else False


def turning_point(curve: Sequence[Share]) -> Share | None:
    """The switch behind which failures become most frequent: before it the share rises most."""
    known = [share for share in curve if share.value is not None]
    rises = [
        ((share.value or 0.0) - (before.value or 0.0), -share.event, before)
        for before, share in pairwise(known)
    ]
    if known:
        # Behind the last switch the execution fails as it did.
        rises.append((1.0 - (known[-1].value or 0.0), -len(curve), known[-1]))
    best = max(rises, default=None, key=lambda rise: rise[:2])
    return best[2] if best is not None and best[0] > 0 else None


def mark_of(curve: Sequence[Share]) -> dict[int, str]:
    """The row of the turning point for a table of steps: the number of its step, and the text."""
    turn = turning_point(curve)
    return {} if turn is None else {turn.event: MARK}


def curve_lines(curve: Sequence[Share]) -> list[str]:
    """The curve as text: a line for each switch, of which one is marked."""
    if not curve:
        return ["continuations: not judged; the replay differs, or no thread was switched"]
    mark = turning_point(curve)
    width = max(len(f"{share.event:,}") for share in curve)
    lines = ["continuations that fail, when the steps before a switch are kept:"]
    for share in curve:
        head = f"  {'>' if share is mark else ' '} step {share.event:>{width},}"
        if share.value is None:
            lines.append(f"{head}  not judged  thread {share.thread} at {share.place}")
            continue
        bar = "#" * round(BAR * share.value)
        lines.append(
            f"{head}  {share.failed:>3} of {share.judged:<3} {bar:<{BAR}} "
            f"thread {share.thread} at {share.place}"
        )
    if mark is not None:
        lines.append(
            f"behind step {mark.event:,} the failure becomes inevitable: the share rises most there"
        )
    return lines


def short_line(curve: Sequence[Share]) -> str:
    """The curve in one line: a digit of tenths for each switch, "-" for one without a share."""
    mark = turning_point(curve)
    tenths = "".join(
        "-" if share.value is None else "X" if share.value == 1 else str(int(10 * share.value))
        for share in curve
    )
    if mark is None:
        return "inevitable: not known; no switch raises the share of continuations that fail"
    return (
        f"inevitable behind step {mark.event:,}, where thread {mark.thread} goes on at "
        f"{mark.place}; tenths of continuations that fail, switch by switch: {tenths}"
    )


def inevitable_text(curve: Sequence[Share]) -> str:
    """The switch behind which the failure becomes inevitable, in one sentence; "" if unknown."""
    mark = turning_point(curve)
    if mark is None:
        return ""
    later = [share for share in curve if share.event > mark.event and share.judged]
    behind = "the execution itself does"
    if later:
        behind = f"{later[0].failed} of {later[0].judged} with those up to the next switch do"
    sure = not later or later[0].value == 1
    became = "became inevitable" if sure else "became much more likely"
    return (
        f"the failure {became} when thread {mark.thread} went on at {mark.place}, behind step "
        f"{mark.event:,}: {mark.failed} of {mark.judged} other continuations of the steps before "
        f"it fail, and {behind}"
    )

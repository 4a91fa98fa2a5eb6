"""An execution as a drawing: a lane for each thread, with its steps from top to bottom.

Arrows show synchronisation between threads; marks show stale reads and the accesses that failed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.lanes import NOT_MADE, Places, is_left_out, repetition, what_it_did
from pulsar_ml.harness.search.symbols import describe_pc, own_pc, source_line, source_of
from pulsar_ml.harness.subjects.program import Program, call_text
from pulsar_ml.harness.subjects.subject import Subject

MOST_ROWS = 400  # of one drawing; longer ones lose rows after the first FIRST_ROWS
FIRST_ROWS = 100
# Arrows: synchronisation, a stale read, any other read of another thread's store, and the order
# that is missing.
BEFORE, READS, SEES, MISSING = "happens before", "reads", "sees", "missing"

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One row of a drawing.

    Attributes:
        lane: the thread.
        kind: the engine's word for the step, or "gap" where rows are left out.
        text: the step in words.
        place, source: file:line, and the line itself.
        mark: "stale" for a load that did not read the newest store, "first" and "second" for the
            accesses of a race in their order, "failed" for the failing access, "turn" for the first
            step behind which the failure is inevitable, else "".
        number: the number of the step among the steps of all threads.
        call, block: the number of the thread's call, and the operation, or the function of a test.
        file, line: the place in full, if the file is here; else "" and 0.
    """

    lane: int
    kind: str
    text: str
    place: str = ""
    source: str = ""
    mark: str = ""
    number: int = 0
    call: int = 0
    block: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from one row to a later one.

    ``kind`` is BEFORE for synchronisation, READS from a store to the stale load that read it, SEES
    to any other read of another thread's store, or MISSING for an order that would have helped.
    """

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Missing:
    """An order of two steps of the trace that the execution lacks, and why it does, in words."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A drawing: the number of lanes, the rows, the arrows, and words for a missing order."""

    lanes: int
    steps: tuple[Step, ...]
    arrows: tuple[Arrow, ...]
    missing: str = ""


def timeline(
    failure: Failure,
    trace: Sequence[dict[str, Any]],
    *,
    subject: Subject | None = None,
    sources: bool = True,
    turn: int | None = None,
    missing: Missing | None = None,
) -> Timeline:
    """Draw ``trace``, the replay of ``failure``.

    ``subject`` gives the numbers of arguments. ``sources=False`` leaves source lines out, for a
    module that was built from changed copies. ``turn`` is the number of the step behind which the
    failure is inevitable, counted in the steps of threads. ``missing`` is drawn beside the order
    that the threads have.
    """
    program = Program.from_json(failure.program)
    names, places = Names(trace), Places(trace)
    marks = guilty(failure, trace)
    met = () if missing is None else (missing.start, missing.end)
    if missing is not None and marks.get(missing.end) == "second":
        marks.setdefault(missing.start, "first")  # of a block that is freed: another address
    shown = [
        index
        for index, event in enumerate(trace)
        if int(event["thread"]) >= 0
        and (index in (*marks, *met) or not is_left_out(event, names, trace))
    ]
    number_of = {
        index: number
        for number, index in enumerate(
            index for index, event in enumerate(trace) if int(event["thread"]) >= 0
        )
    }
    blocks = Blocks(program, subject)
    if turn is not None:
        turn_index = [at for at, event in enumerate(trace) if int(event["thread"]) >= 0][turn]
        behind = next((index for index in shown if index >= turn_index), None)
        if behind is not None:
            marks.setdefault(behind, "turn")
    steps = []
    for index in shown:
        event = trace[index]
        call = event["op"] in ("call", "return") and event["order"] != NOT_MADE
        stale = "stale" if event["stale"] and event["op"] == "load" else ""
        pc = own_pc(event["frames"]) if event["frames"] else 0
        file, line = (source_of(pc) if sources and not call else None) or ("", 0)
        steps.append(
            Step(
                lane=int(event["thread"]),
                kind=str(event["op"]),
                text=what_it_did(event, names, program, subject),
                place="" if call else places.of(event),
                source=source_line(pc) if sources and not call else "",
                mark=marks.get(index, stale),
                number=number_of[index],
                call=int(event["call"]),
                block=blocks.of(event),
                file=file,
                line=line,
            )
        )
    lanes = max([len(program.threads), *(step.lane + 1 for step in steps)])
    arrows = [*learned(trace), *reads(trace)]
    if missing is not None:
        arrows.append(Arrow(missing.start, missing.end, MISSING))
    drawn = cut(folded(steps, shown, trace, arrows, lanes))
    return replace(drawn, missing=missing.text) if missing is not None else drawn


class Blocks:
    """The blocks of a drawing: the calls of a program, and the functions of a test."""

    def __init__(self, program: Program, subject: Subject | None) -> None:
        self.program = program
        self.subject = subject

    def of(self, event: Event) -> str:
        thread, call = int(event["thread"]), int(event["call"])
        threads = self.program.threads
        known = thread < len(threads) and 0 <= call < len(threads[thread])
        if known and not self.program.is_test:
            return call_text(self.program, thread, call, self.subject)
        if event["op"] in ("call", "return") or not event["frames"]:
            return ""
        return describe_pc(own_pc(event["frames"])).rpartition(" ")[0]


def guilty(failure: Failure, trace: Sequence[Event]) -> dict[int, str]:
    """Return marks by index in the trace, for both accesses of a race or the failing access."""
    race = failure.race
    if race is None:
        where = failure.where[0] if failure.where else ""
        found = last(
            trace, lambda event: bool(where) and int(event["thread"]) >= 0 and at(event) == where
        )
        return {} if found is None else {found: "failed"}
    second = last(trace, lambda event: made_at(event, race.second.thread, race.second.place))
    if second is None:
        return {}
    address = trace[second]["address"]
    first = last(
        trace[:second],
        lambda event: (
            made_at(event, race.first.thread, race.first.place) and event["address"] == address
        ),
    )
    return {second: "second"} if first is None else {first: "first", second: "second"}


def made_at(event: Event, thread: int, place: str) -> bool:
    return int(event["thread"]) == thread and at(event) == place


def at(event: Event) -> str:
    return describe_pc(int(event["pc"])) if event["op"] not in ("call", "return") else ""


def last(trace: Sequence[Event], holds: Any) -> int | None:
    return next((index for index in range(len(trace) - 1, -1, -1) if holds(trace[index])), None)


def learned(trace: Sequence[Event]) -> list[Arrow]:
    """Return an arrow for each step that synchronised with an earlier step of another thread.

    A component of a vector clock grows with each release of its thread. The released step is the
    first one after which its thread's own component is larger than the value acquired; for a thread
    without such a step it is the last one. No arrow is drawn for knowledge that came through a
    third thread which has an arrow to the same step.
    """
    counts: dict[int, list[int]] = {}  # by thread: its own clock after each of its steps
    indexes: dict[int, list[int]] = {}
    known: dict[int, tuple[int, ...]] = {}
    arrows = []
    for index, event in enumerate(trace):
        thread = int(event["thread"])
        if thread < 0:
            continue
        clock = tuple(event["clock"])
        before = known.get(thread, ())
        sources: dict[int, int] = {}
        for other, count in enumerate(clock):
            news = other != thread and count > (before[other] if other < len(before) else 0)
            if news and other in counts:
                place = min(bisect_right(counts[other], count), len(counts[other]) - 1)
                sources[other] = indexes[other][place]
        for other, start in sources.items():
            if not any(
                through != other
                and other < len(trace[by]["clock"])
                and trace[by]["clock"][other] >= clock[other]
                for through, by in sources.items()
            ):
                arrows.append(Arrow(start, index, BEFORE))
        known[thread] = clock
        counts.setdefault(thread, []).append(clock[thread] if thread < len(clock) else 0)
        indexes.setdefault(thread, []).append(index)
    return arrows


def reads(trace: Sequence[Event]) -> list[Arrow]:
    """Return an arrow to each stale load, and to each other read of another thread's store."""
    arrows = []
    for index, event in enumerate(trace):
        start = int(event["from"])
        if event["op"] not in ("load", "rmw", "cas") or start < 0:
            continue
        if event["op"] == "load" and event["stale"]:
            arrows.append(Arrow(start, index, READS))
        elif trace[start]["thread"] != event["thread"]:
            arrows.append(Arrow(start, index, SEES))
    return arrows


def folded(
    steps: list[Step], shown: list[int], trace: Sequence[Event], arrows: list[Arrow], lanes: int
) -> Timeline:
    """Fold equal iterations of a loop into one, and move the arrows from the trace to the rows."""
    keys = [(step.lane, step.text + step.place + step.mark) for step in steps]
    rows: list[Step] = []
    row_of: list[int] = []  # by place in ``shown``
    place = 0
    while place < len(steps):
        turn, times = repetition(keys, place)
        rows_before = len(rows)
        rows += steps[place : place + turn]
        row_of += range(rows_before, rows_before + turn)
        if times > 1:
            first = steps[place + turn]
            rows.append(
                Step(
                    first.lane,
                    "gap",
                    f"the same {times - 1} times more",
                    number=first.number,
                    call=first.call,
                    block=first.block,
                )
            )
            row_of += [len(rows) - 1] * (turn * (times - 1))
        place += turn * times

    visible = dict(zip(shown, row_of, strict=True))

    def row(event: int) -> int:
        """Return the row of the event, or of its thread's last visible one before; -1 for none."""
        thread = trace[event]["thread"]
        while event >= 0 and (event not in visible or trace[event]["thread"] != thread):
            event -= 1
        return visible.get(event, -1)

    moved = {(row(arrow.start), row(arrow.end), arrow.kind) for arrow in arrows}
    kept = [Arrow(*ends) for ends in sorted(moved) if min(ends[:2]) >= 0 and ends[0] != ends[1]]
    return Timeline(lanes, tuple(rows), tuple(kept))


def cut(drawn: Timeline) -> Timeline:
    """Keep the first rows and the last, in which the failure is: at most MOST_ROWS."""
    count = len(drawn.steps)
    if count <= MOST_ROWS:
        return drawn
    behind = count - (MOST_ROWS - FIRST_ROWS)
    gap = Step(drawn.steps[behind].lane, "gap", f"{behind - FIRST_ROWS:,} steps left out")
    moved = {row: row for row in range(FIRST_ROWS)}
    moved |= {row: row - behind + FIRST_ROWS + 1 for row in range(behind, count)}
    arrows = tuple(
        Arrow(moved[arrow.start], moved[arrow.end], arrow.kind)
        for arrow in drawn.arrows
        if arrow.start in moved and arrow.end in moved
    )
    gap = replace(gap, number=drawn.steps[FIRST_ROWS].number)
    return Timeline(drawn.lanes, (*drawn.steps[:FIRST_ROWS], gap, *drawn.steps[behind:]), arrows)

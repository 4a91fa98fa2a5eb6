"""An execution as a table with one column for each thread.

Each row is a step: the access, the store that a load read, and the place in the source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pulsar_ml.harness.engine import ORDERS
from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.search.symbols import (
    FIRST_INTERPRETED,
    describe_pc,
    interpreted_value,
    look_up_pcs,
    of_library,
    own_pc,
    source_line,
)
from pulsar_ml.harness.subjects.program import Program, call_text
from pulsar_ml.harness.subjects.recipe import find_recipe
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.wording import counted

NOT_MADE = len(ORDERS)  # the "order" of an access that did not happen, because it races
WIDTH = 72  # the most characters of a column
FEW_TURNS = 4  # this many equal iterations of a loop, or more, are shown once
LIBRARY_STEPS = ("read", "write", "allocate", "free")
LONGEST_TURN = 6  # the most rows of an iteration


def lane_table(
    program: Program,
    trace: Sequence[dict[str, Any]],
    *,
    subject: Subject | None = None,
    width: int = WIDTH,
    sources: bool = True,
    names: Names | None = None,
    marks: Mapping[int, str] | None = None,
    numbered: bool = False,
    chosen: Collection[int] | None = None,
    ending: Sequence[str] = (),
) -> str:
    """Return the trace in columns, and below it the source lines that it names, if they are here.

    Rows are the steps of an execution of ``program`` in their order, indented to their thread; no
    column is wider than ``width``. ``subject`` gives the numbers of arguments. ``sources=False``
    leaves the source lines out, for a module that was built from changed copies: its file names
    lead to the unchanged ones. ``names`` are those of the trace's locations. ``marks`` are rows
    before steps, by their number among the steps of all threads. With ``numbered`` each row begins
    with that number, counted from 1; of ``chosen`` numbers, counted from 0, the others are left
    out. ``ending`` are lines behind the last row.
    """
    names = names or Names(trace)
    places = Places(trace)
    rows: list[tuple[int, str]] = []
    steps: list[int] = []  # of each row, 0: none
    number, left_out = -1, 0
    for event in trace:
        thread = int(event["thread"])
        if thread < 0:
            continue
        number += 1
        if marks and number in marks:
            rows.append((thread, marks[number]))
        if is_left_out(event, names, trace):
            continue
        if chosen is not None and number not in chosen:
            left_out += 1
            continue
        if left_out:
            rows.append((thread, f"-- {counted(left_out, 'step')} --"))
            left_out = 0
        elif rows and thread != rows[-1][0]:
            rows.append((thread, "-- goes on --"))
        steps += [0] * (len(rows) - len(steps)) + [number + 1]
        rows.append((thread, describe(event, names, places, program, subject)))
    if left_out:
        rows.append((rows[-1][0] if rows else 0, f"-- {counted(left_out, 'step')} --"))
    steps += [0] * (len(rows) - len(steps))
    rows, steps = without_repetition(rows, steps)
    seen = {thread for thread, _ in rows}
    widths = {
        thread: min(
            width,
            max(len(text) for text in ("thread 0", *(row for at, row in rows if at == thread))) + 2,
        )
        for thread in sorted(seen)
    }
    header = "".join(f"thread {thread}".ljust(columns) for thread, columns in widths.items())
    legend = places.legend() if sources else []
    lines = [header.rstrip(), *(cell_row(*row, widths) for row in rows)]
    if numbered:
        digits = len(str(max(steps, default=0)))
        heads = [" " * digits, *(f"{step or '':>{digits}}" for step in steps)]
        lines = [f"{at}  {line}".rstrip() for at, line in zip(heads, lines, strict=True)]
    return "\n".join([*lines, *ending, *legend])


def is_left_out(event: dict[str, Any], names: Names, trace: Sequence[dict[str, Any]]) -> bool:
    """Return True for plain accesses of one thread and to constants, for those of libraries' own
    code, and for variables of interpreted code that one thread uses.

    The access in which the execution ended is shown in any case.
    """
    if event["order"] == NOT_MADE or event is trace[-1]:
        return False
    if int(event["pc"]) >= FIRST_INTERPRETED and event["op"] in ("load", "store"):
        return not names.shared(event)
    if event["op"] not in LIBRARY_STEPS:
        return False
    if int(event["pc"]) >= FIRST_INTERPRETED:
        return True  # the load or store behind it is the same access
    if event["op"] in ("read", "write") and (
        not names.shared(event) or names.hands_over(event) or names.constant(event)
    ):
        return True
    return of_library(int(event["pc"])) and event["address"] != trace[-1]["address"]


def without_repetition(
    rows: list[tuple[int, str]], steps: list[int]
) -> tuple[list[tuple[int, str]], list[int]]:
    """Show one iteration for many equal ones: a thread that waits would fill the table.

    ``steps`` are the numbers of the rows, which differ.
    """
    shown: list[tuple[int, str]] = []
    numbers: list[int] = []
    at = 0
    while at < len(rows):
        turn, times = repetition(rows, at)
        if times < FEW_TURNS:
            turn = times = 1
        shown += rows[at : at + turn]
        numbers += steps[at : at + turn]
        if times > 1:
            shown.append((rows[at + turn - 1][0], f"-- the same {times - 1} times more --"))
            numbers.append(0)
        at += turn * times
    return shown, numbers


def repetition(rows: list[tuple[int, str]], at: int) -> tuple[int, int]:
    """Return the rows and the count of the shortest iteration that is repeated from ``at``.

    One row and one time, if nothing is repeated FEW_TURNS times.
    """
    for turn in range(1, LONGEST_TURN + 1):
        times = 1
        while rows[at + times * turn : at + (times + 1) * turn] == rows[at : at + turn] != []:
            times += 1
        if times >= FEW_TURNS:
            return turn, times
    return 1, 1


class Places:
    """File and line of each step; the file's name alone where it is unambiguous."""

    def __init__(self, trace: Sequence[dict[str, Any]]) -> None:
        events = [
            event
            for event in trace
            if int(event["thread"]) >= 0 and event["op"] not in ("call", "return")
        ]
        look_up_pcs(int(event["pc"]) for event in events)
        pcs = list(dict.fromkeys(own_pc(event["frames"]) for event in events))
        self.full = {pc: describe_pc(pc).rpartition(" ")[2] for pc in pcs}
        files = {place.rpartition(":")[0] for place in self.full.values()}
        names = [file.rpartition("/")[2] for file in files]
        self.short = dict(self.full)
        for pc, place in self.full.items():
            if names.count(place.rpartition("/")[2].rpartition(":")[0]) == 1:
                self.short[pc] = place.rpartition("/")[2]
        self.used: dict[str, int] = {}

    def of(self, event: Mapping[str, Any]) -> str:
        pc = own_pc(event["frames"])
        self.used.setdefault(self.short[pc], pc)
        return self.short[pc]

    def legend(self) -> list[str]:
        """Return the source lines of the places used, behind an empty line."""
        found = {place: source_line(pc) for place, pc in self.used.items()}
        known = {place: text for place, text in found.items() if text}
        longest = max(map(len, known), default=0)
        lines = [
            f"{place.ljust(longest)}  {text}" for place, text in sorted(known.items(), key=by_line)
        ]
        return ["", *lines] if lines else []


def by_line(item: tuple[str, str]) -> tuple[str, int]:
    file, _, line = item[0].rpartition(":")
    return file, int(line)


def describe(
    event: dict[str, Any], names: Names, places: Places, program: Program, subject: Subject | None
) -> str:
    """Describe a step and its place in the source."""
    text = what_it_did(event, names, program, subject)
    happened = event["order"] != NOT_MADE
    return text if happened and event["op"] in ("call", "return") else f"{text}  {places.of(event)}"


def what_it_did(
    event: Mapping[str, Any], names: Names, program: Program, subject: Subject | None
) -> str:
    """Describe a step without its place."""
    op = event["op"]
    if event["order"] == NOT_MADE:
        return f"{op} of {names.of(event)} races"
    order = ORDERS[int(event["order"])]
    if op == "call":
        return f"> {call_text(program, int(event['thread']), int(event['address']), subject)}"
    if op == "return":
        return f"< {returned(event, program, subject)}"
    if op == "choose":
        return f"chooses {event['value']} of 0 to {int(event['address']) - 1}"
    if op == "note":
        return f"note: {event['text']}"
    if op == "refuse":
        return f"no memory for {counted(int(event['value']), 'byte')}"
    if op in ("spawn", "join"):
        return f"{op} thread {event['value']}"
    if op == "fence":
        return f"fence {order}"
    what = names.of(event)
    if int(event["pc"]) >= FIRST_INTERPRETED and op in ("load", "store"):
        arrow = "->" if op == "load" else "<-"
        text = interpreted_value(int(event["value"]))
        return f"{what} {arrow} {text}" if int(event["value"]) else f"{op} {what}"
    value = names.value(signed(event["value"]))
    if op == "load":
        stale = f" ({counted(int(event['stale']), 'store')} old)" if event["stale"] else ""
        return f"{what} -> {value} {order}{stale}"
    if op in ("store", "buffer", "flush"):
        behind = f" (before {counted(int(event['stale']), 'store')})" if event["stale"] else ""
        buffered = {"store": "", "buffer": " (into the buffer)", "flush": " (left the buffer)"}[op]
        return f"{what} <- {value} {order}{behind}{buffered}"
    if op in ("rmw", "cas"):
        if event["failed"]:
            return f"{what} is {names.value(signed(event['before']))}, cas fails"
        behind = f" (before {counted(int(event['stale']), 'store')})" if event["stale"] else ""
        return f"{what}: {names.value(signed(event['before']))} -> {value} {op} {order}{behind}"
    if op == "look":
        return f"look at {what} -> {event['value']}"
    if op == "lock" and event["failed"]:
        return f"lock {what} {'times out' if event['value'] else 'fails: it is not free'}"
    size = f" ({event['value']} bytes)" if op == "allocate" else ""
    return f"{op} {what}{size}"


def returned(event: Mapping[str, Any], program: Program, subject: Subject | None) -> str:
    """Describe the end of a call: its answer, if the subject is generated from signatures."""
    status, word = signed(event["value"]), signed(event["before"])
    if program.is_test:
        return f"{program.subject}() returns"
    if subject is not None and subject.needs_gil:
        from pulsar_ml.harness.pythreads.answers import answer_text as text_of_python

        return text_of_python(status, word)
    recipe = find_recipe(subject) if subject is not None else None
    if recipe is None or recipe.call != "operations":
        return f"status {status}"
    from pulsar_ml.harness.signatures.answers import answer_text

    return answer_text(status, word)


def signed(value: Any) -> int:
    number = int(value)
    return number - 2**64 if number >= 2**63 else number


def cell_row(thread: int, text: str, widths: Mapping[int, int]) -> str:
    """Return the row of one step. ``widths`` has the threads with a column, in order."""
    before = sum(columns for other, columns in widths.items() if other < thread)
    room = widths[thread] if thread in widths and thread != max(widths) else 2 * WIDTH
    shown = text if len(text) < room else text[: room - 2] + "~"
    return (" " * before + shown).rstrip()

"""An execution as a table with one column per thread: what each step did, which store a load read, where
it stands in the source, and where the running thread changed and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pulsar_ml.harness.failure import Failure, Replayed
from pulsar_ml.harness.program import Program
from pulsar_ml.harness.symbols import describe_pc

ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
WIDTH = 44


def lane_table(failure: Failure, trace: Sequence[dict[str, Any]], *, width: int = WIDTH) -> str:
    """The trace in columns. Rows are steps in their order, indented to their thread."""
    program = Program.from_json(failure.program)
    names = Names()
    rows = []
    previous = None
    for event in trace:
        thread = int(event["thread"])
        if thread < 0 or event["op"] in ("read", "write") and not names.shared(trace, event):
            continue
        if previous is not None and thread != previous:
            rows.append(switch_row(thread, len(program.threads), width))
        previous = thread
        rows.append(cell_row(describe(event, names, program), thread, len(program.threads), width))
    header = "".join(f"thread {number}".ljust(width) for number in range(len(program.threads)))
    return "\n".join([header.rstrip(), *rows])


class Names:
    """Short names for addresses, in the order of their first appearance."""

    def __init__(self) -> None:
        self.known: dict[int, str] = {}
        self.threads: dict[int, set[int]] | None = None

    def of(self, address: int) -> str:
        return self.known.setdefault(address, f"m{len(self.known)}")

    def shared(self, trace: Sequence[dict[str, Any]], event: dict[str, Any]) -> bool:
        """Plain accesses are shown where two threads meet."""
        if self.threads is None:
            self.threads = {}
            for other in trace:
                if other["op"] not in ("call", "return"):
                    self.threads.setdefault(int(other["address"]), set()).add(int(other["thread"]))
        return len(self.threads.get(int(event["address"]), ())) > 1


def describe(event: dict[str, Any], names: Names, program: Program) -> str:
    op = event["op"]
    order = ORDERS[int(event["order"])]
    if op == "call":
        thread, number = int(event["thread"]), int(event["address"])
        call = program.threads[thread][number]
        arguments = ", ".join(str(value) for value in call["arguments"].tolist())
        return f"> {program.operations[int(call['code'])]}({arguments})"
    if op == "return":
        return f"< status {signed(event['value'])}"
    place = describe_pc(int(event["pc"])).rpartition(" ")[2]
    if op == "fence":
        return f"fence {order}  {place}"
    what = names.of(int(event["address"]))
    value = signed(event["value"])
    if op == "load":
        stale = f" ({event['stale']} stores old)" if event["stale"] else ""
        return f"{what} -> {value} {order}{stale}  {place}"
    if op in ("store", "flush"):
        behind = f" (before {event['stale']} stores)" if event["stale"] else ""
        return f"{what} <- {value} {order}{behind}  {place}" + (
            "  (left the buffer)" if op == "flush" else ""
        )
    if op in ("rmw", "cas"):
        if event["failed"]:
            return f"{what} is {signed(event['before'])}, cas fails  {place}"
        return f"{what}: {signed(event['before'])} -> {value} {op} {order}  {place}"
    return f"{op} {what}  {place}"


def signed(value: Any) -> int:
    number = int(value)
    return number - 2**64 if number >= 2**63 else number


def cell_row(text: str, thread: int, threads: int, width: int) -> str:
    room = width if thread < threads - 1 else 2 * width
    shown = text if len(text) < room else text[: room - 2] + "~"
    return (" " * (width * thread) + shown).rstrip()


def switch_row(thread: int, threads: int, width: int) -> str:
    return (" " * (width * thread) + "-- goes on --").rstrip()


def summary(failure: Failure, replayed: Replayed | None = None) -> str:
    """What failed, where, and how to make it again."""
    program = Program.from_json(failure.program)
    calls = sum(len(calls) for calls in program.threads)
    lines = [
        f"{failure.kind}{' ' + failure.rule if failure.rule else ''}: {failure.message}",
        f"  {failure.subject}, {len(program.threads)} threads, {calls} operations, mode {failure.mode}, "
        f"{len(failure.decisions)} decisions",
    ]
    lines += [f"  at {place}" for place in failure.where]
    if replayed is not None:
        lines.append(f"  {replayed.verdict()}")
    return "\n".join(lines)

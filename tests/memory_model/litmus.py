"""Litmus programs: a few threads with a few atomic operations on three cells and a mutex.

A program is a value that prints as C, and :func:`random_program` draws one from a seed. Outcomes
are what its calls returned, thread by thread, and the final values of the cells.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

CELLS = 3
NAMES = "xyz"
LOAD, STORE, EXCHANGE, CAS, FENCE, LOCK, UNLOCK = KINDS = (
    *("load", "store", "exchange", "cas", "fence", "lock", "unlock"),
)
# The numbers of GCC's builtins.
RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST = ORDERS = (0, 2, 3, 4, 5)
ORDER_NAMES = {0: "relaxed", 2: "acquire", 3: "release", 4: "acq_rel", 5: "seq_cst"}
MOST_EXPECTED = 7
FAILED_CAS = 8

# Results of each thread's calls, and the final values of the cells.
Outcome = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. ``value`` is what it writes, ``expected`` what a compare-and-swap compares with."""

    kind: str
    cell: int = 0
    order: int = RELAXED
    value: int = 0
    expected: int = 0

    @property
    def reads(self) -> bool:
        return self.kind in (LOAD, EXCHANGE, CAS)

    def __str__(self) -> str:
        order = ORDER_NAMES[self.order]
        match self.kind:
            case "load":
                return f"r = {NAMES[self.cell]} ({order})"
            case "store":
                return f"{NAMES[self.cell]} = {self.value} ({order})"
            case "exchange":
                return f"r = exchange {NAMES[self.cell]}, {self.value} ({order})"
            case "cas":
                return f"r = cas {NAMES[self.cell]}, {self.expected} -> {self.value} ({order})"
            case "fence":
                return f"fence ({order})"
        return self.kind


@dataclass(frozen=True, slots=True)
class Litmus:
    """A program: for each thread its operations."""

    threads: tuple[tuple[Operation, ...], ...]

    def __str__(self) -> str:
        columns = [[f"thread {t}", *map(str, calls)] for t, calls in enumerate(self.threads)]
        rows = max(map(len, columns))
        width = max(len(text) for column in columns for text in column) + 2
        return "\n".join(
            "".join(
                (column[row] if row < len(column) else "").ljust(width) for column in columns
            ).rstrip()
            for row in range(rows)
        )

    def smaller(self) -> list[Litmus]:
        """Return the programs with one operation less, and those with one order weaker."""
        found = []
        for t, calls in enumerate(self.threads):
            for i, call in enumerate(calls):
                if call.kind in (LOCK, UNLOCK):
                    continue
                rest = calls[:i] + calls[i + 1 :]
                found.append(Litmus((*self.threads[:t], rest, *self.threads[t + 1 :])))
                if call.order != RELAXED and call.kind != FENCE:
                    weak = Operation(call.kind, call.cell, RELAXED, call.value, call.expected)
                    changed = (*calls[:i], weak, *calls[i + 1 :])
                    found.append(Litmus((*self.threads[:t], changed, *self.threads[t + 1 :])))
        return [program for program in found if any(program.threads)]


def orders_of(kind: str) -> tuple[int, ...]:
    """Return the memory orders that C11 allows for an operation."""
    match kind:
        case "load":
            return (RELAXED, ACQUIRE, SEQ_CST)
        case "store":
            return (RELAXED, RELEASE, SEQ_CST)
        case "fence":
            return (ACQUIRE, RELEASE, ACQ_REL, SEQ_CST)
    return ORDERS


def random_program(seed: int, *, threads: int, operations: int, locks: bool = False) -> Litmus:
    """Draw a program of ``threads`` threads with ``operations`` operations in all.

    With ``locks`` one or two threads hold the mutex around some of their operations. Each write has
    a value of its own, so that an outcome says which write a read saw.
    """
    draw = random.Random(f"{seed} {threads} {operations} {locks}")
    cells = draw.choice((1, 2, 2, 2, 2, 2, 3))
    sizes = [operations // threads] * threads
    for _ in range(operations % threads):
        sizes[draw.randrange(threads)] += 1
    written = 0
    program = []
    for size in sizes:
        calls: list[Operation] = []
        cell = draw.randrange(cells)
        for _ in range(size):
            kind = draw.choices((LOAD, STORE, EXCHANGE, CAS, FENCE), (10, 10, 1, 1, 2))[0]
            order = draw.choice(orders_of(kind))
            if kind != FENCE and draw.random() < 0.4:
                order = RELAXED
            if kind in (STORE, EXCHANGE, CAS):
                written = min(written + 1, MOST_EXPECTED)
            expected = draw.randrange(written + 1) if kind == CAS else 0
            calls.append(Operation(kind, cell, order, written, expected))
            # Mostly another cell than before: reordering needs two.
            cell = (cell + draw.choice((0, 1, 1, 1, 2))) % cells
        if locks and draw.random() < 0.7:
            begin = draw.randrange(len(calls))
            end = draw.randrange(begin, len(calls)) + 1
            calls[end:end] = [Operation(UNLOCK)]
            calls[begin:begin] = [Operation(LOCK)]
        program.append(tuple(calls))
    return Litmus(tuple(program))

"""Litmus programs: a few threads with a few operations on three atomic cells, a mutex, a condition
and other threads.

A program is a value that prints as C. Outcomes are what its calls returned, thread by thread, and
the final values of the cells, or which calls ended before a deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

CELLS = 3
NAMES = "xyz"
LOAD, STORE, EXCHANGE, CAS, FENCE, LOCK, UNLOCK = ACCESSES = (
    *("load", "store", "exchange", "cas", "fence", "lock", "unlock"),
)
WAIT, TIMED_WAIT, NOTIFY_ONE, NOTIFY_ALL, SPAWN, JOIN = WAITING = (
    *("wait", "timed_wait", "notify_one", "notify_all", "spawn", "join"),
)
TRY_LOCK, LOCK_UNTIL, LOCK_FOR = ATTEMPTS = ("try_lock", "lock_until", "lock_for")
LOCKS = (LOCK, *ATTEMPTS)
READ_LOCK, WRITE_LOCK, SHARED_UNLOCK, TAKE, GIVE, COUNT = OBJECTS = (
    *("read_lock", "write_lock", "shared_unlock", "take", "give", "count"),
)
KINDS = (*ACCESSES, *WAITING, *ATTEMPTS, *OBJECTS)
HOW = ("waits", "tries", "until")  # to get a lock of OBJECTS or a unit: the cell of the operation
ORDERED = (LOAD, STORE, EXCHANGE, CAS)
# The numbers of GCC's builtins.
RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST = ORDERS = (0, 2, 3, 4, 5)
ORDER_NAMES = {0: "relaxed", 2: "acquire", 3: "release", 4: "acq_rel", 5: "seq_cst"}
MOST_THREADS = 4
DEADLOCK = 1 << 63

# Four words with the results of a thread's calls, four bits each, and the final values, four bits
# each. After a deadlock the fifth word is DEADLOCK and the numbers of calls that ended, five bits
# each.
Outcome = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. ``value`` is what it writes, a deadline or a span, ``expected`` what a
    compare-and-swap compares with; ``cell`` is the thread that is started or joined."""

    kind: str
    cell: int = 0
    order: int = RELAXED
    value: int = 0
    expected: int = 0

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
            case "timed_wait":
                return f"r = wait until {self.value}"
            case "try_lock":
                return "r = try lock"
            case "lock_until" | "lock_for":
                return f"r = {self.kind.replace('_', ' ')} {self.value}"
            case "spawn" | "join":
                return f"{self.kind} thread {self.cell}"
        return self.kind.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Litmus:
    """A program: for each thread its operations. The threads that others start come last."""

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

    def calls(self) -> Iterator[Operation]:
        for calls in self.threads:
            yield from calls

    def has(self, *kinds: str) -> bool:
        return any(call.kind in kinds for call in self.calls())

    @property
    def roots(self) -> int:
        """Return how many threads run from the beginning."""
        return len(self.threads) - sum(call.kind == SPAWN for call in self.calls())

    def smaller(self) -> list[Litmus]:
        """Return the programs with one operation less, and those with one order weaker.

        A section of the mutex goes as a whole, when no thread waits in it; so does a thread.
        """
        found: list[Litmus | None] = []
        for t, calls in enumerate(self.threads):
            if t >= self.roots or self.roots > 1:
                found.append(self.without_thread(t))
            for i, call in enumerate(calls):
                rest = calls[:i] + calls[i + 1 :]
                if call.kind in (UNLOCK, SPAWN):
                    continue
                if call.kind in LOCKS:
                    end = i + 1 + [later.kind for later in calls[i + 1 :]].index(UNLOCK)
                    if any(inner.kind in (WAIT, TIMED_WAIT) for inner in calls[i:end]):
                        continue
                    rest = calls[:i] + calls[i + 1 : end] + calls[end + 1 :]
                found.append(self.with_thread(t, rest))
                if call.order != RELAXED and call.kind in ORDERED:
                    weak = replace(call, order=RELAXED)
                    found.append(self.with_thread(t, (*calls[:i], weak, *calls[i + 1 :])))
        return [program for program in found if program is not None and any(program.threads)]

    def with_thread(self, t: int, calls: tuple[Operation, ...]) -> Litmus:
        return Litmus((*self.threads[:t], calls, *self.threads[t + 1 :]))

    def without_thread(self, t: int) -> Litmus | None:
        """Return the program without a thread, or None when that thread starts others."""
        if any(call.kind in (SPAWN, JOIN) for call in self.threads[t]):
            return None
        return Litmus(
            tuple(
                tuple(
                    replace(call, cell=call.cell - (call.cell > t))
                    if call.kind in (SPAWN, JOIN)
                    else call
                    for call in calls
                    if not (call.kind in (SPAWN, JOIN) and call.cell == t)
                )
                for u, calls in enumerate(self.threads)
                if u != t
            )
        )


def describe(program: Litmus, outcome: Outcome) -> str:
    """Return an outcome as text: the results of each thread, and the final values."""
    stuck = outcome[4] & DEADLOCK
    parts = []
    for t, calls in enumerate(program.threads):
        ended = outcome[4] >> 5 * t & 31 if stuck else len(calls)
        row = [str(outcome[t] >> 4 * i & 15) for i in range(ended)]
        if ended < len(calls):
            row.append(f"stuck at {calls[ended]}")
        parts.append(f"thread {t}: {', '.join(row) or 'nothing'}")
    if stuck:
        return f"deadlock; {'; '.join(parts)}"
    finals = (f"{NAMES[cell]} = {outcome[4] >> 4 * cell & 15}" for cell in range(CELLS))
    return f"{'; '.join(parts)}; at the end {', '.join(finals)}"

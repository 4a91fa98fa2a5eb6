"""The pending reads' side of their traces: requests that join storage reads under way."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pulsar_ml import Entry, EntryCacheManager, PendingReadsManager, StorageError

LEDGERS = (3, 4)
ENTRIES = 16


def trace(random: Random, length: int) -> list[str]:
    """Requests of up to six entries, and answers of storage reads in any order."""
    lines = ["new pending"]
    for number in range(length):
        operation = random.choices(["request", "complete", "fail", "invalidate"], [8, 8, 2, 1])[0]
        ledger, first = random.choice(LEDGERS), random.randrange(ENTRIES)
        read = random.randrange(number + 1)
        lines.append(
            {
                "request": f"request {number} {ledger} {first} {first + random.randrange(6)}",
                "invalidate": f"invalidate {ledger}",
            }.get(operation, f"{operation} {read}")
        )
    return lines


class Pending:
    """The pending reads of one managed ledger; storage reads are numbered as they begin."""

    def __init__(self) -> None:
        self.manager = EntryCacheManager(clock=lambda: 0)
        self.reads: list[tuple[int, int, int, int] | None] = []
        self.events: list[str] = []
        self.pending = PendingReadsManager(self.manager, self.start)

    def start(self, token: int, ledger: int, first: int, last: int, expected: object) -> None:
        self.events.append(f"read{len(self.reads)}={ledger}:{first}-{last}")
        self.reads.append((token, ledger, first, last))

    def request(self, name: str, ledger: int, first: int, last: int) -> None:
        def listener(entries: list[Entry] | None, error: BaseException | None) -> None:
            if entries is None:
                self.events.append(f"{name}=failed")
                return
            ids = [str(entry.entry_id) for entry in entries]
            for entry in entries:
                entry.release()
            self.events.append(f"{name}={','.join(ids)}")

        self.pending.read(ledger, first, last, listener)

    def complete(self, number: int, *, fails: bool) -> str:
        read = self.reads[number] if number < len(self.reads) else None
        if read is None:
            return "none"
        self.reads[number] = None
        token, ledger, first, last = read
        if fails:
            self.pending.fail(token, StorageError("of the trace"))
            return "failed"
        ids = range(first, last + 1)
        self.pending.complete(token, [self.manager.entry((ledger, each), b"x") for each in ids])
        return "completed"

    def __call__(self, words: Sequence[str]) -> str:
        self.events.clear()
        answer = "done"
        if words[0] == "request":
            self.request(words[1], *(int(word) for word in words[2:]))
        elif words[0] == "invalidate":
            self.pending.invalidate_ledger(int(words[1]))
        else:
            answer = self.complete(int(words[1]), fails=words[0] == "fail")
        return f"{answer} {' '.join(sorted(self.events))}"

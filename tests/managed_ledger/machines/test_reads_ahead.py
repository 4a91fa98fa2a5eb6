"""has_entry and read_ahead against a model of sets, and mutants that random programs find."""

from __future__ import annotations

import pytest
from hypothesis import Phase
from hypothesis import strategies as draw
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from pulsar_ml import Position
from pulsar_ml.managed_ledger import Fault, MemoryStorage
from tests.managed_ledger.interleaved.mutants import Mutant, applied
from tests.managed_ledger.kit import Broker
from tests.managed_ledger.test_state_machine import options

SIZE, ESTIMATE = 36, 100  # bytes of a payload, and of its entry's permits
LIMIT, MOST = 600, 420  # bytes of reads in flight, and of those that a read ahead may fill
ENTRIES = 24
EXAMPLES = 100  # the budget of a machine, and of each mutant
# The entries of a read ahead that are cached after these faults.
CACHED = {
    (): slice(None),
    (Fault.FAIL,): slice(0),
    (Fault.CLOSED,): slice(None),
    (Fault.CLOSED, Fault.CLOSED): slice(0),
    (Fault.FOREIGN,): slice(None),
    (Fault.FOREIGN_INSTEAD,): slice(1, None),
}

firsts, lengths = draw.integers(0, ENTRIES - 1), draw.integers(1, 6)


class ReadAheadMachine(RuleBasedStateMachine):
    """One ledger, one cursor at its begin, and the model: the cached entries, the stalled reads."""

    @initialize(
        limited=draw.sampled_from([True, True, False]),
        active=draw.sampled_from([True, True, False]),
    )
    def begin(self, limited: bool, active: bool) -> None:
        self.broker = Broker(MemoryStorage(), limit=LIMIT if limited else 0)
        self.active = active
        self.broker.ledger.open_cursor("reader", active=active)
        self.count = 0
        self.cached: set[int] = set()
        self.stalled: list[range] = []
        self.add(ENTRIES - 2)
        self.evict(0, ENTRIES)

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            while self.stalled:
                self.resume()
            self.broker.close()

    @property
    def ledger_id(self) -> int:
        return self.broker.ledger.ledger_ids[0]

    @property
    def in_flight(self) -> int:
        return sum(map(len, self.stalled)) * ESTIMATE

    @rule(count=draw.integers(1, 4))
    def add(self, count: int) -> None:
        count = min(count, ENTRIES - self.count)
        self.broker.add(count, size=SIZE)
        self.cached |= set(range(self.count, self.count + count))
        self.count += count

    @rule(first=firsts, length=draw.sampled_from([1, 4, ENTRIES, ENTRIES]))
    def evict(self, first: int, length: int) -> None:
        gone = (self.ledger_id, first), (self.ledger_id, first + length)
        self.broker.ledger.cache.cached.remove_range(*gone, last_inclusive=False)
        self.cached -= set(range(first, first + length))

    def begins(self, first: int, last: int, max_bytes: int, *, condition: bool) -> range | None:
        """The entries of a read ahead that begins, or None."""
        if max_bytes:
            last = min(last, first + max(1, max_bytes // ESTIMATE) - 1)
        wanted = range(first, last + 1)
        refused = (
            first in self.cached
            or any(set(wanted) & set(stalled) for stalled in self.stalled)
            or not condition
            or (self.broker.limit and self.in_flight + len(wanted) * ESTIMATE > MOST)
        )
        return None if refused else wanted

    @rule(
        first=firsts,
        length=lengths,
        max_bytes=draw.sampled_from([0, 0, 1, 99, 200, 299]),
        condition=draw.sampled_from([True, True, True, False]),
        faults=draw.sampled_from([*CACHED, *[(Fault.STALL,)] * 4]),
    )
    def read_ahead(
        self, first: int, length: int, max_bytes: int, condition: bool, faults: tuple[Fault, ...]
    ) -> None:
        last = min(first + length, self.count) - 1
        if first > last or (faults and set(range(first, last + 1)) & self.cached):
            return
        wanted = self.begins(first, last, max_bytes, condition=condition)
        self.broker.storage.plan(*faults)
        reopened, ended = len(self.broker.storage.reopened), list[bool]()
        began = self.broker.ledger.cache.read_ahead(
            self.ledger_id,
            first,
            last,
            average=SIZE,
            expected_reads=lambda: int(self.active),
            max_bytes=max_bytes,
            condition=lambda: condition,
            on_done=lambda: ended.append(True),
        )
        assert began == (wanted is not None), (first, last, self.cached, self.stalled)
        self.broker.storage.planned.clear()
        if wanted is None:
            return
        if faults == (Fault.STALL,):
            assert not ended
            self.stalled.append(wanted)
            return
        assert ended == [True]
        assert len(self.broker.storage.reopened) - reopened == (Fault.CLOSED in faults)
        if Fault.CLOSED in faults:
            self.broker.storage.reopen_ledger(self.ledger_id)
        if self.active:
            self.cached |= set(wanted[CACHED[faults]])

    @rule(first=firsts, length=lengths)
    def read_ahead_of_the_ledger(self, first: int, length: int) -> None:
        """The managed ledger cuts a range at its end and knows the cursors."""
        wanted = None
        if first < self.count:
            last = min(first + length, self.count) - 1
            wanted = self.begins(first, last, 0, condition=True)
        began = self.broker.ledger.read_ahead(
            self.ledger_id, first, first + length - 1, cursor="reader"
        )
        assert began == (wanted is not None)
        if wanted is not None and self.active:
            self.cached |= set(wanted)

    @rule()
    def resume(self) -> None:
        if self.stalled:
            self.broker.storage.resume()
            read = self.stalled.pop(0)
            if self.active:
                self.cached |= set(read)

    @rule(first=firsts)
    def read_ahead_at_the_watermark(self, first: int) -> None:
        """Caches that reached the eviction watermark take no read ahead, and nothing is evicted."""
        manager = self.broker.manager
        other = manager.range_cache("other")
        other.put((9, 9), b"x" * 9999)
        manager.configure(max_size=manager.size * 100 // 95)  # 90 % is the watermark
        assert manager.is_at_eviction_watermark
        assert not self.broker.ledger.read_ahead(self.ledger_id, first, first, cursor="reader")
        manager.configure(max_size=None)
        other.clear()

    @invariant()
    def has_entry_names_the_cached_ones(self) -> None:
        if hasattr(self, "broker"):
            ledger, known = self.broker.ledger, range(ENTRIES + 1)
            seen = {i for i in known if ledger.has_entry(Position(self.ledger_id, i))}
            assert seen == self.cached

    @invariant()
    def permits_are_those_of_stalled_reads(self) -> None:
        if hasattr(self, "broker"):
            limit = self.broker.limit
            assert self.broker.factory.limiter.remaining == (
                limit - self.in_flight if limit else -1
            )


def hunt() -> None:
    """The machine with its usual budget, nothing stored and nothing shrunk."""
    run_state_machine_as_test(
        ReadAheadMachine, settings=options(EXAMPLES, database=None, phases=[Phase.generate])
    )


def mutant(name: str, before: str, after: str) -> Mutant:
    return Mutant(name, "entry_cache", before, after, hunt)


MUTANTS = (
    mutant(
        "an entry that is being read counts as cached",
        "        return position in self.cached\n",
        "        return position in self.cached or self.is_reading(*position, position.entry_id)\n",
    ),
    mutant("what is cached is read ahead", "(ledger_id, first) in self.cached or self", "self"),
    mutant(
        "a read ahead fills caches at the watermark",
        " in self.cached or self.manager.is_at_eviction_watermark:",
        " in self.cached:",
    ),
    mutant(
        "a read ahead of fewer bytes than an entry reads nothing",
        "first + max(1, max_bytes // estimated_size(1, average)) - 1",
        "first + max_bytes // estimated_size(1, average) - 1",
    ),
    mutant(
        "max_bytes takes one entry more",
        "max_bytes // estimated_size(1, average)) - 1)",
        "max_bytes // estimated_size(1, average)))",
    ),
    mutant(
        "a read that is under way is read again",
        "self.is_reading(ledger_id, first, last) or not condition()",
        "not condition()",
    ),
    mutant(
        "a read that is under way covers its first entry only",
        "first <= self.last and self.first <= last",
        "first <= self.first and self.first <= last",
    ),
    mutant("no condition holds a read ahead back", " or not condition():", ":"),
    mutant(
        "reads that are in flight do not count",
        "most - self.limiter.remaining + wanted >",
        "wanted >",
    ),
    mutant("a read ahead may fill the limit", "int(most * READ_AHEAD_LIMIT)", "most"),
    mutant(
        "a failed read ahead is never done",
        "                discard(read.result())\n            on_done()\n",
        "                discard(read.result())\n                on_done()\n",
    ),
    mutant(
        "a closed handle is a failure",
        "isinstance(answer.exception(), LedgerHandleClosedError):",
        "isinstance(answer.exception(), KeyError):",
    ),
    mutant(
        "a foreign entry is cached",
        "        if expected and is_requested:\n",
        "        if expected:\n",
    ),
    mutant(
        "a foreign entry without a position fails the read",
        "        if not is_requested and min(at) < 0:\n            return\n",
        "",
    ),
)


def test_reads_ahead_answer_as_their_model() -> None:
    hunt()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_random_programs_find_each_mutant(mutant: Mutant) -> None:
    with applied(mutant) as changed:
        assert changed
        with pytest.raises((AssertionError, ExceptionGroup)):
            mutant.program()

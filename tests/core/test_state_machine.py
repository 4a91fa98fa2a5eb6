"""The Python binding against a plain model, every step compared, eviction order included."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from pulsar_ml import Entry, EntryCacheManager, PositionMismatchError
from tests.core.conftest import FIXED, assert_nothing_in_use
from tests.core.model import At, Bytes, Manager, Wrapper, reads
from tests.core.present import present

NAMES = st.sampled_from(["a", "a", "b"])
# Few positions, so that they meet; on both sides of page (64) and branch (4,096) edges.
POSITIONS = [(1, 0), (1, 63), (1, 64), (1, 4095), (1, 4096), (2, 0), (2**63 - 1, 2**63 - 1)]
AT = st.sampled_from(POSITIONS)
BOUND = AT | st.tuples(st.sampled_from([-1, 0, 1, 2]), st.sampled_from([-1, 0, 2, 64, 5000]))
DATA = st.binary(min_size=1, max_size=4) | st.just(b"")
TIME = st.integers(-2, 6)
EXPECTED = st.integers(0, 2)
MOST = st.sampled_from([0, 1, 2, 5])


class CacheMachine(RuleBasedStateMachine):
    model_class = Manager
    entries = Bundle("entries")

    @initialize(most=MOST, extend=st.booleans())
    def start(self, most: int, extend: bool) -> None:
        self.manager = EntryCacheManager(
            max_requeue_count=most, extend_ttl_of_recently_accessed=extend
        )
        self.model = self.model_class(most, extend)
        self.held: list[tuple[Entry, Bytes]] = []

    def hold(self, entry: Entry, model: Bytes) -> tuple[Entry, Bytes]:
        self.held.append((entry, model))
        return entry, model

    # Entries -------------------------------------------------------------------------------------

    @rule(target=entries, at=AT, data=DATA, expected=EXPECTED)
    def make(self, at: At, data: bytes, expected: int) -> tuple[Entry, Bytes]:
        entry = self.manager.entry(at, data, expected_reads=expected)
        return self.hold(entry, Bytes(at, data, reads(expected), counts_read=True))

    @rule(target=entries, pair=entries, counts=st.booleans())
    def copy(self, pair: tuple[Entry, Bytes], counts: bool) -> tuple[Entry, Bytes]:
        return self.hold(pair[0].copy(counts_read=counts), pair[1].copy(counts_read=counts))

    @rule(pair=consumes(entries))
    def release(self, pair: tuple[Entry, Bytes]) -> None:
        pair[0].release()
        pair[1].release()
        self.held.remove(pair)

    @rule(pair=entries)
    def expect_read(self, pair: tuple[Entry, Bytes]) -> None:
        entry, model = pair
        entry.expect_read()
        model.reads.expected += 1
        model.reads.exists = True

    # Caches --------------------------------------------------------------------------------------

    @rule(name=NAMES, at=AT, data=DATA, expected=EXPECTED, time=TIME)
    def put_bytes(self, name: str, at: At, data: bytes, expected: int, time: int) -> None:
        cache = self.manager.range_cache(name)
        done = cache.put(at, data, expected_reads=expected, timestamp_ns=time)
        entry = Bytes(at, data, reads(expected), counts_read=False)
        assert done is self.model.put(name, entry, time)

    @rule(name=NAMES, puts=st.lists(st.tuples(AT, DATA, EXPECTED, TIME), min_size=2, max_size=6))
    def put_several(self, name: str, puts: list[tuple[At, bytes, int, int]]) -> None:
        for put in puts:
            self.put_bytes(name, *put)

    @rule(name=NAMES, at=AT)
    def touch(self, name: str, at: At) -> None:
        entry, model = self.manager.range_cache(name).get(at), self.model.get(name, at)
        assert (entry is None) == (model is None)
        if entry is not None:
            entry.release()
            present(model).release()

    @rule(name=NAMES, pair=entries, time=TIME)
    def put_entry(self, name: str, pair: tuple[Entry, Bytes], time: int) -> None:
        entry, model = pair
        done = self.manager.range_cache(name).put(entry.position, entry, timestamp_ns=time)
        assert done is self.model.put(name, model.copy(counts_read=False), time)

    @rule(name=NAMES, pair=entries, at=AT)
    def put_elsewhere(self, name: str, pair: tuple[Entry, Bytes], at: At) -> None:
        if at != pair[1].at:
            with pytest.raises(PositionMismatchError):
                self.manager.range_cache(name).put(at, pair[0])

    @rule(target=entries, name=NAMES, at=AT)
    def get(self, name: str, at: At) -> object:
        entry, model = self.manager.range_cache(name).get(at), self.model.get(name, at)
        assert (entry is None) == (model is None)
        return multiple() if entry is None or model is None else self.hold(entry, model)

    @rule(target=entries, name=NAMES, bounds=st.tuples(BOUND, BOUND))
    def get_range(self, name: str, bounds: tuple[At, At]) -> object:
        first, last = sorted(bounds)
        found = self.manager.range_cache(name).get_range(first, last)
        models = [
            present(self.model.get(name, present(w.entry).at))
            for w in self.model.range(name, first, last)
        ]
        assert [tuple(entry.position) for entry in found] == [model.at for model in models]
        return multiple(*[self.hold(*pair) for pair in zip(found, models, strict=True)])

    @rule(name=NAMES, bounds=st.tuples(BOUND, BOUND), inclusive=st.booleans())
    def remove_range(self, name: str, bounds: tuple[At, At], inclusive: bool) -> None:
        first, last = sorted(bounds)
        removed = self.manager.range_cache(name).remove_range(first, last, last_inclusive=inclusive)
        assert removed == self.model.remove(
            self.model.range(name, first, last, inclusive=inclusive)
        )

    @rule(name=NAMES, how=st.sampled_from(["clear", "close", "remove_range_cache"]))
    def empty(self, name: str, how: str) -> None:
        cache = self.manager.range_cache(name)
        if how == "remove_range_cache":
            removed = self.manager.remove_range_cache(name)
        else:
            removed = getattr(cache, how)()
        assert removed == self.model.remove(list(self.model.caches.get(name, {}).values()))

    # Eviction ------------------------------------------------------------------------------------

    @rule(before=TIME, now=TIME)
    def evict_before(self, before: int, now: int) -> None:
        evicted = self.manager.evict_entries_before(before, now_ns=now)
        assert evicted == self.model.evict(now=now, before=before)

    @rule(size=st.integers(1, 6), now=TIME)
    def evict_bytes(self, size: int, now: int) -> None:
        assert self.manager.evict_bytes(size, now_ns=now) == self.model.evict(now=now, target=size)

    @rule(now=TIME)
    def drain(self, now: int) -> None:
        """Pass by pass, so that the order of the whole queue shows."""
        while self.model.queue:
            self.evict_bytes(1, now)
            self.contents_agree()

    @rule(most=MOST, extend=st.booleans())
    def configure(self, most: int, extend: bool) -> None:
        self.manager.configure(max_requeue_count=most, extend_ttl_of_recently_accessed=extend)
        self.model.most_requeues, self.model.extend_accessed = most, extend

    # After every step ----------------------------------------------------------------------------

    @invariant()
    def contents_agree(self) -> None:
        for name in ("a", "b"):
            cache = self.manager.range_cache(name)
            assert {at for at in POSITIONS if at in cache} == set(self.model.caches.get(name, {}))

    @invariant()
    def sizes_agree(self) -> None:
        for name in ("a", "b"):
            assert self.manager.range_cache(name).size == self.model.size(name)
        assert self.manager.size == self.model.size("a") + self.model.size("b")

    @invariant()
    def entries_agree(self) -> None:
        for entry, model in self.held:
            assert (tuple(entry.position), bytes(entry)) == (model.at, model.data)
            assert (entry.references, entry.expected_reads) == (
                model.references,
                model.reads.expected,
            )

    @invariant()
    def objects_agree(self) -> None:
        in_use = self.manager.objects_in_use()
        assert in_use.pop("range_caches") <= 3
        assert in_use == self.model.objects_in_use([model for _, model in self.held])

    def teardown(self) -> None:
        if not hasattr(self, "manager"):
            return
        self.manager.close()
        for entry, model in self.held:
            assert bytes(entry) == model.data
            entry.release()
        assert_nothing_in_use(self.manager)


BUDGET = settings(FIXED, max_examples=200, stateful_step_count=50)
FINDING = settings(BUDGET, max_examples=3_000)  # ends at the first difference
CacheMachine.TestCase.settings = BUDGET
TestCacheMachine = CacheMachine.TestCase


class ForgetsAccess(Manager):
    def keeps(self, wrapper: Wrapper) -> bool:
        wrapper.accessed = False
        return Manager.keeps(self, wrapper)


class RequeuesAtTheHead(Manager):
    def evict(
        self, *, now: int, before: int | None = None, target: int | None = None
    ) -> tuple[int, ...]:
        head = self.queue[:1]
        done = Manager.evict(self, now=now, before=before, target=target)
        self.queue.sort(key=lambda wrapper: wrapper not in head)
        return done


class CountsTheDuplicate(Manager):
    def put(self, name: str, entry: Bytes, timestamp: int) -> bool:
        taken = self.caches.get(name, {}).get(entry.at)
        if taken is not None:
            taken.timestamp = timestamp
        return Manager.put(self, name, entry, timestamp)


class LosesTheRead(Manager):
    def remove(self, wrappers: list[Wrapper]) -> tuple[int, int]:
        for wrapper in wrappers:
            present(wrapper.entry).reads.expected -= 1
        return Manager.remove(self, wrappers)


@pytest.mark.parametrize(
    "wrong", [ForgetsAccess, RequeuesAtTheHead, CountsTheDuplicate, LosesTheRead]
)
def test_the_machine_tells_a_wrong_model_from_the_cache(wrong: type[Manager]) -> None:
    class Machine(CacheMachine):
        model_class = wrong

    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Machine, settings=settings(FINDING, phases=[Phase.generate], database=None)
        )

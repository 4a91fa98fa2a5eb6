"""A model of the Python binding on one thread, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.core.present import present

At = tuple[int, int]


@dataclass(slots=True, eq=False)
class Reads:
    """Expected reads; ``exists`` says whether a native count exists, which the first copy makes."""

    expected: int
    exists: bool


def reads(expected: int) -> Reads:
    return Reads(expected, expected > 0)


@dataclass(slots=True, eq=False)
class Bytes:
    """A native entry: its references, and the expected reads it shares with copies."""

    at: At
    data: bytes
    reads: Reads
    counts_read: bool
    references: int = 1

    def release(self) -> None:
        self.references -= 1
        if self.references == 0 and self.counts_read:
            self.reads.expected = max(self.reads.expected - 1, 0)

    def copy(self, *, counts_read: bool) -> Bytes:
        self.reads.exists = True
        return Bytes(self.at, self.data, self.reads, counts_read)


@dataclass(slots=True, eq=False)
class Wrapper:
    entry: Bytes | None
    cache: dict[At, Wrapper]
    timestamp: int
    accessed: bool = False
    requeue_count: int = 0

    def remove(self) -> int:
        """Out of its cache, empty from now on; returns the bytes that were counted."""
        entry, self.entry = present(self.entry), None
        del self.cache[entry.at]
        entry.release()
        return len(entry.data)


@dataclass(slots=True)
class Manager:
    most_requeues: int
    extend_accessed: bool
    caches: dict[str, dict[At, Wrapper]] = field(default_factory=dict)
    queue: list[Wrapper] = field(default_factory=list)

    def put(self, name: str, entry: Bytes, timestamp: int) -> bool:
        cache = self.caches.setdefault(name, {})
        if entry.at in cache:
            present(cache[entry.at].entry).reads = entry.reads
            return False
        cache[entry.at] = Wrapper(entry, cache, timestamp)
        self.queue.append(cache[entry.at])
        return True

    def get(self, name: str, at: At) -> Bytes | None:
        wrapper = self.caches.get(name, {}).get(at)
        if wrapper is None:
            return None
        wrapper.accessed = True
        present(wrapper.entry).references += 1
        return wrapper.entry

    def range(self, name: str, first: At, last: At, *, inclusive: bool = True) -> list[Wrapper]:
        cache = self.caches.get(name, {})
        return [
            cache[at]
            for at in sorted(cache)
            if first <= at and (at < last or (inclusive and at == last))
        ]

    def remove(self, wrappers: list[Wrapper]) -> tuple[int, int]:
        sizes = [wrapper.remove() for wrapper in wrappers]
        return len(sizes), sum(sizes)

    def keeps(self, wrapper: Wrapper) -> bool:
        if self.extend_accessed and wrapper.accessed:
            return True
        expects = present(wrapper.entry).reads.expected >= 1
        return wrapper.requeue_count < self.most_requeues and expects

    def evict(
        self, *, now: int, before: int | None = None, target: int | None = None
    ) -> tuple[int, ...]:
        """A pass; returns (entries, bytes, requeued, missing)."""
        entries = size = requeued = missing = 0
        first_round = len(self.queue)
        while self.queue:
            wrapper = self.queue[0]
            if wrapper.entry is None:
                missing += 1
            elif size >= target if target is not None else wrapper.timestamp >= present(before):
                break
            elif requeued + entries + missing < first_round and self.keeps(wrapper):
                wrapper.requeue_count += not (self.extend_accessed and wrapper.accessed)
                wrapper.timestamp, wrapper.accessed = now, False
                self.queue.append(wrapper)
                requeued += 1
            else:
                size += wrapper.remove()
                entries += 1
            del self.queue[0]
        return entries, size, requeued, missing

    def size(self, name: str) -> int:
        return sum(
            len(present(wrapper.entry).data) for wrapper in self.caches.get(name, {}).values()
        )

    def objects_in_use(self, held: list[Bytes]) -> dict[str, int]:
        """The counts of EntryCacheManager.objects_in_use without the caches; ``held`` by the
        caller.
        """
        cached = [(name, at) for name, cache in self.caches.items() for at in cache]
        alive = {id(entry): entry for entry in held}
        alive |= {id(wrapper.entry): wrapper.entry for wrapper in self.queue if wrapper.entry}
        counts = {id(entry.reads) for entry in alive.values() if entry.reads.exists}
        return {
            "entries": len(alive),
            "read_counts": len(counts),
            "wrappers": len(self.queue),
            "pages": len({(name, ledger, entry >> 6) for name, (ledger, entry) in cached}),
            "branches": len({(name, ledger, entry >> 12) for name, (ledger, entry) in cached}),
        }

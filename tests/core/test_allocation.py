"""Allocation failure: a named error, and everything as it was before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pulsar_ml

PRELUDE = """
import resource
from pulsar_ml import AllocationError, EntryCacheManager

def limit(more):
    pages = int(open("/proc/self/statm").read().split()[0])
    at_most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (at_most, resource.RLIM_INFINITY))

def free():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def failing(call):
    try:
        call()
    except MemoryError as error:
        assert type(error) is AllocationError, type(error)
        assert "nothing was changed" in str(error) or "no native memory" in str(error), error
        return
    raise SystemExit("no error")

MB = 1 << 20
"""

ONE_LARGE_PUT = """
manager = EntryCacheManager(max_size=None)
cache = manager.range_cache("a")
cache.put((1, 1), b"kept", expected_reads=1)
large = bytes(256 * MB)
before = manager.objects_in_use()
limit(64 * MB)
failing(lambda: cache.put((1, 2), large))
failing(lambda: cache.put((1, 2), large, expected_reads=3))
failing(lambda: manager.entry((1, 2), large, expected_reads=3))
assert manager.objects_in_use() == before
assert (1, 2) not in cache and cache.size == 4
assert cache.put((1, 2), b"small")
free()
assert not cache.put((1, 2), large)
assert cache.put((1, 3), large)
with cache.get((1, 1)) as entry:
    assert bytes(entry) == b"kept"
manager.close()
"""

FILLED_TO_THE_BRIM = """
manager = EntryCacheManager()
cache = manager.range_cache("a")
data = b"x" * (2 * MB)
cache.put((1, 0), data)
limit(64 * MB)
count = 1
while count < 1000:
    try:
        assert cache.put((1, count), data)
    except AllocationError:
        break
    count += 1
assert 2 < count < 100, count
assert (1, count) not in cache
assert cache.size == count * len(data)
assert manager.objects_in_use()["entries"] == count
for entry in cache.get_range((1, 0), (1, count)):
    assert entry.data == data
    entry.release()
assert manager.evict_bytes(5 * len(data)).entries >= 5
assert cache.put((1, count), data)
manager.close()
"""

NO_MANAGER = """
limit(1 * MB)
failing(lambda: [EntryCacheManager() for _ in range(1000)])
free()
manager = EntryCacheManager()
assert manager.range_cache("a").put((1, 1), b"x")
manager.close()
"""


def run(script: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(pulsar_ml.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_payload_that_does_not_fit_changes_nothing() -> None:
    run(ONE_LARGE_PUT)


def test_a_cache_filled_to_the_brim_is_whole_and_usable() -> None:
    run(FILLED_TO_THE_BRIM)


def test_a_manager_that_does_not_fit_leaves_nothing_behind() -> None:
    run(NO_MANAGER)

"""Boost.Lockfree under the engine: misuse is found, and nothing is reported of the library beyond
the races of its free list, which are races by the rules of C++.

The free list reads and writes the link of a node without an atomic while a slower thread may still
look at that node; the tag in the node's address then makes the slower thread try again. With these
accesses allowed, results are right in every mode, except that a queue of a fixed number of nodes
loses an element in mode c11: a stale tail leads to a node that is in the free list already.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import libboost_headers
import pytest

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT

HERE = Path(__file__).parent
HEADERS = Path(libboost_headers.__file__).parent / "include"
MODES = ("sc", "tso", "c11")
EXECUTIONS = 6_000
SEEDS = range(5)
LIVELOCKS = SEEDS[
    :2
]  # without races the misuse shows as threads that turn until a bound stops them

# The functions of the free list that access links without atomics, and their other sides.
FREE_LIST = (
    *("tagged_ptr::set_ptr", "tagged_ptr::extract_ptr"),
    *("tagged_index::set_index", "tagged_index::get_index", "stack::link_nodes_atomic"),
)
RACY = ("queue_fixed", "bounded_queue_fixed", "stack_fixed")
RIGHT = [
    *[(name, mode) for name in ("queue_fixed", "stack_fixed", "spsc_fixed") for mode in MODES],
    *[("bounded_queue_fixed", mode) for mode in ("sc", "tso")],
]
MISUSED = ("queue_unsynchronized", "stack_unsynchronized", "spsc_two_producers")


@cache
def built() -> ModuleType:
    digest = hashlib.sha256((HEADERS / "boost/version.hpp").read_bytes())
    for path in [HERE.parent / "programs" / "kit.hpp", *HERE.glob("boost*")]:
        digest.update(path.read_bytes())
    path = build_extension(
        HERE / "strangers_boost.pyx",
        into=ROOT / "build" / "programs" / f"boost-{digest.hexdigest()[:12]}",
        include=[HEADERS],
        checked=True,
        flags=["-std=gnu++20", "-Wno-unused"],
        language="c++",
        macros={"PML_BUILD_ID": '"programs"'},
    )
    return load_checked(path)


def run(name: str, mode: str, seed: int = 0, **options: Any) -> Exploration:
    subject = built().SUBJECTS[name]
    program = Program.generate(subject, 0, threads=built().THREADS[name], operations=1, noise=False)
    done = explore(
        subject, program, executions=EXECUTIONS, mode=mode, seed=seed, reuse="mixed", **options
    )
    if done.failure is not None:
        assert done.failure.replay(subject).exact
    return done


@pytest.mark.parametrize(("name", "mode"), RIGHT)
def test_nothing_is_reported_beyond_the_free_list(name: str, mode: str) -> None:
    done = run(name, mode, suppress=FREE_LIST)
    assert done.verdict == "clean", done.failure
    assert done.statistics["cut"] == 0
    assert bool(done.statistics["suppressed"]) == (name in RACY)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RACY)
def test_every_seed_finds_the_race_of_the_free_list(name: str, mode: str) -> None:
    for seed in SEEDS:
        failure = run(name, mode, seed).failure
        assert failure is not None
        assert failure.kind == "data race"
        assert "lockfree/" in " ".join(failure.where) or "detail/" in " ".join(failure.where)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_queue_of_indices_loses_an_element_behind_its_race(seed: int) -> None:
    failure = run("bounded_queue_fixed", "c11", seed, races=False).failure
    assert failure is not None
    assert failure.message == "the end is not what it should be"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MISUSED)
def test_every_seed_finds_the_misuse(name: str, mode: str) -> None:
    for seed in SEEDS:
        assert run(name, mode, seed, suppress=FREE_LIST).verdict == "violation"
    for seed in LIVELOCKS:
        assert run(name, mode, seed, races=False).verdict == "violation"

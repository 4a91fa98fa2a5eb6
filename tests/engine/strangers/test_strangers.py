"""Structures in the styles of known libraries: right ones stay silent, wrong twins are found."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT

HERE = Path(__file__).parent
EXECUTIONS = 6_000
SEEDS = range(5)
MODULES = {
    "strangers_c": ("c", "-std=gnu11"),
    "strangers_cpp": ("c++", "-std=gnu++20"),
    "strangers_cython": ("c++", "-std=gnu++17"),
}
RACY = ("data race", "use after free", "invariant", "uninitialised read", "crash")

# program: module, the kinds that it may show first, the weakest mode that shows it.
WRONG = {
    "ck_ring_unpublished": ("strangers_c", RACY, "sc"),
    "ck_ring_unacquired": ("strangers_c", RACY, "sc"),
    "ck_stack_unacquired": ("strangers_c", RACY, "sc"),
    "ck_epoch_unfenced": ("strangers_c", RACY, "tso"),
    "ck_replace_unfenced": ("strangers_c", RACY, "tso"),
    "ck_replace_at_once": ("strangers_c", RACY, "sc"),
    "implicit_relaxed": ("strangers_cpp", RACY, "sc"),
    "hazard_unfenced": ("strangers_cpp", RACY, "tso"),
    "hazard_forgotten": ("strangers_cpp", ("leak",), "sc"),
    "pool_unwoken": ("strangers_cpp", ("deadlock",), "sc"),
    "buffer_unlocked": ("strangers_cpp", RACY, "sc"),
    "first_use_by_hand": ("strangers_cython", RACY, "sc"),
}
RIGHT = {
    "strangers_c": "ck_ring ck_stack ck_replace",
    "strangers_cython": "loaded first_use",
    "strangers_cpp": "implicit implicit_recycled implicit_threads hazard pool buffer",
}
FIXED = [(module, f"{name}_fixed") for module, names in RIGHT.items() for name in names.split()]


@cache
def built(name: str) -> ModuleType:
    language, standard = MODULES[name]
    digest = hashlib.sha256()
    for path in sorted([*(HERE.parent / "programs").glob("kit.h*"), *HERE.glob("*.h*")]):
        digest.update(path.read_bytes())
    path = build_extension(
        HERE / f"{name}.pyx",
        into=ROOT / "build" / "programs" / f"strangers-{digest.hexdigest()[:12]}",
        checked=True,
        volatile="relaxed" if name == "strangers_c" else "plain",
        flags=[standard, "-Wno-unused"],
        language=language,
        macros={"PML_BUILD_ID": '"programs"'},
    )
    return load_checked(path)


def run(module: str, name: str, *, seed: int = 0, **options: Any) -> Exploration:
    native = built(module)
    subject = native.SUBJECTS[name]
    program = Program.generate(subject, 0, threads=native.THREADS[name], operations=1, noise=False)
    return explore(subject, program, executions=EXECUTIONS, seed=seed, reuse="mixed", **options)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", WRONG)
def test_a_twin_is_found(name: str, seed: int) -> None:
    module, kinds, _ = WRONG[name]
    failure = run(module, name, seed=seed).failure
    assert failure is not None
    assert failure.kind in kinds
    assert failure.replay(built(module).SUBJECTS[name]).exact


@pytest.mark.parametrize("name", [name for name, (_, _, mode) in WRONG.items() if mode == "tso"])
def test_a_missing_fence_needs_a_memory_model(name: str) -> None:
    module, kinds, _ = WRONG[name]
    assert run(module, name, mode="sc").verdict == "clean"
    failure = run(module, name, mode="tso").failure
    assert failure is not None
    assert failure.kind in kinds


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
@pytest.mark.parametrize(("module", "name"), FIXED)
def test_the_right_one_stays_silent(module: str, name: str, mode: str) -> None:
    done = run(module, name, mode=mode, faults=("spurious", "weak_failure"))
    assert done.verdict == "clean", done.failure
    assert done.statistics["cut"] == 0


# libstdc++ before 14 sleeps on a value of the counter that it read before it span, and so loses a
# wake-up (bug 104928 of GCC).
def test_a_lost_wake_up_in_the_semaphores_of_libstdcxx_is_found() -> None:
    done = run("strangers_cpp", "buffer_of_library")
    if built("strangers_cpp").LIBSTDCXX >= 14:
        assert done.verdict == "clean", done.failure
        return
    assert done.failure is not None
    assert done.failure.kind == "deadlock"
    assert "waits for futex" in done.failure.message
    assert "semaphore_base.h" in done.failure.where[0]

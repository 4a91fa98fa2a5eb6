"""The core's checked build by Clang is as clean under the engine as the one by GCC."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from types import ModuleType

import pytest

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.suites.registry import SUITES
from tests import ROOT

PROGRAMS, EXECUTIONS = 4, 500


@cache
def by_clang() -> ModuleType:
    package = ROOT / "pulsar_ml"
    digest = hashlib.sha256()
    for path in sorted([*package.rglob("*.pxd"), *package.rglob("*.h")]):
        digest.update(path.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", "clang")
        patch.setenv("LDSHARED", "clang -shared")
        path = build_extension(
            package / "operations" / "_native.pyx",
            into=ROOT / "build" / "programs" / f"core-by-clang-{digest.hexdigest()[:12]}",
            macros={"PML_FAULTS": "1", "PML_BUILD_ID": '"clang"'},
            flags=["-O2", "-std=gnu11", "-Wno-unused"],
            checked=True,
        )
    assert b"clang version" in path.read_bytes()
    return load_checked(path)


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_clean_in_the_build_by_clang(name: str) -> None:
    suite = SUITES[name]
    subject = by_clang().SUBJECTS[suite.subject]
    for seed in range(PROGRAMS):
        program = program_of(subject, suite, seed, TrialOptions(engine="controlled"))
        done = explore(subject, program, executions=EXECUTIONS, seed=seed, reuse="mixed")
        assert done.failure is None, done.failure
        assert done.executions == EXECUTIONS


EXCHANGES = """
#include "pulsar_ml/sync/sync.h"
void by_name(pml_i32 *cell) { pml_i32_exchange_release(cell, 1); }
void by_builtin(int *cell) { __atomic_exchange_n(cell, 1, __ATOMIC_RELEASE); }
"""


@pytest.mark.parametrize(
    ("function", "exchanges"), [("by_name", True), ("by_builtin", False)], ids=["cell", "builtin"]
)
def test_an_exchange_that_nobody_reads_is_no_store(function: str, exchanges: bool) -> None:
    """The builtin is the negative control: Clang compiles it as a store."""
    command = ["clang", "-O2", "-emit-llvm", "-S", "-I", str(ROOT), "-x", "c", "-", "-o", "-"]
    code = subprocess.run(command, input=EXCHANGES, capture_output=True, text=True, check=True)
    _, _, body = code.stdout.partition(f"@{function}(")
    assert ("atomicrmw xchg" in body.partition("}")[0]) is exchanges

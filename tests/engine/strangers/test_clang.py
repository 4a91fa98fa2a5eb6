"""The core's checked build by Clang is as clean under the engine as the one by GCC."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from functools import cache
from types import ModuleType

import pytest

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.checked import (
    LATER_CLANG,
    OF_LATER_CLANG,
    checked_flags,
    clang_version,
)
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.suites.registry import SUITES
from tests import ROOT

PROGRAMS, EXECUTIONS = 4, 500
IS_LATER = clang_version(("clang",)) >= LATER_CLANG
KEEPING = [each for each in OF_LATER_CLANG if "keep" in each or "builtin" in each]


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


def body_of(function: str, source: str, flags: Sequence[str]) -> str:
    """The function as Clang compiles it, in LLVM's language."""
    command = ["clang", *flags, "-emit-llvm", "-S", "-I", str(ROOT), "-x", "c", "-", "-o", "-"]
    code = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return code.stdout.partition(f"@{function}(")[2].partition("}")[0]


EXCHANGES = """
#include "pulsar_ml/sync/sync.h"
void by_name(pml_i32 *cell) { pml_i32_exchange_release(cell, 1); }
void by_builtin(int *cell) { __atomic_exchange_n(cell, 1, __ATOMIC_RELEASE); }
"""


@pytest.mark.parametrize(
    ("function", "exchanges"), [("by_name", True), ("by_builtin", False)], ids=["cell", "builtin"]
)
def test_an_exchange_that_nobody_reads_is_no_store(function: str, exchanges: bool) -> None:
    """The builtin is the negative control: Clang 14 compiles it as a store, Clang 19 does not."""
    exchanges |= IS_LATER
    assert ("atomicrmw xchg" in body_of(function, EXCHANGES, ["-O2"])) is exchanges


UNREAD = """
#include <stdlib.h>
static int unread;
void stores(int x) { unread = x; }
void leaks(void) { int *block = malloc(4); *block = 1; }
"""


@pytest.mark.parametrize(("function", "call"), [("stores", "tsan_write4"), ("leaks", "malloc")])
def test_what_nobody_reads_is_stored_and_allocated(function: str, call: str) -> None:
    """The flags without those of a later Clang are the negative control."""
    flags = checked_flags("plain", ["clang"])
    assert (call in body_of(function, UNREAD, flags)) is IS_LATER
    assert call not in body_of(function, UNREAD, [each for each in flags if each not in KEEPING])

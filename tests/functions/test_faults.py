"""Allocations that fail: each is told apart from the others between two scheduling points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.harness import explore
from pulsar_ml.harness.functions.check import build_tests, check
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.interleave import InterleavingFailure
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT

BUILDS = ROOT / "build" / "functions"
THREE = """#include <assert.h>
#include <stdlib.h>

void test_three(void)
{
    void *volatile blocks[3];
    int missing = 0;
    for (int i = 0; i < 3; i++)
        blocks[i] = malloc(8 + i);
    for (int i = 0; i < 3; i++) {
        missing |= (blocks[i] == NULL) << i;
        free(blocks[i]);
    }
    assert(missing != MISSING);
}
"""


@pytest.mark.parametrize("strategy", ["portfolio", "enumerate", "exhaust"])
@pytest.mark.parametrize("missing", range(8))
def test_the_allocations_that_fail_in_one_step_fail_again(
    missing: int, strategy: str, tmp_path: Path
) -> None:
    path = tmp_path / "three.c"
    path.write_text(THREE.replace("MISSING", str(missing)))
    budget: dict[str, Any] = {"strategy": strategy, "executions": 20_000}
    with pytest.raises(InterleavingFailure) as raised:
        check(path, into=BUILDS, faults=("no_memory",), **budget)
    text = str(raised.value)
    assert "the failure was made again, step by step" in text
    refused = [f"no memory for {8 + i} bytes" in text for i in range(3)]
    assert refused == [bool(missing >> i & 1) for i in range(3)]
    assert len(raised.value.failure.decisions) == missing.bit_count(), "the shrunk ones"


def test_each_set_of_allocations_that_fail_is_a_class(tmp_path: Path) -> None:
    path = tmp_path / "three.c"
    path.write_text(THREE.replace("MISSING", "-1"))
    subject = build_tests(read_source(path), into=BUILDS)["test_three"]
    for strategy in ("enumerate", "reduce"):
        done = explore(
            subject,
            Program.of_test(subject),
            strategy=strategy,
            faults=("no_memory",),
            executions=99,
        )
        assert done.failure is None
        assert (done.executions, done.statistics["classes"]) == (8, 8)

"""``--budget`` of commands and pytest: shares, words, exit codes, and what was not reached."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pulsar_ml.exit_codes import CLEAN, NOTHING_EXERCISED, USAGE, VIOLATION
from pulsar_ml.harness.budgets.changed import NAME
from tests.commands import call
from tests.functions.plugin.test_collect import collected
from tests.functions.plugin.test_known import known_file
from tests.functions.test_command import RING

# Searches that end, however much time there is.
ENDING = "// check: strategy=exhaust\n" + RING
RACE = ENDING + "void test_race(void) { run(write_plain); }\n"
TOO_SHORT = "0.000001"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("budgets")
    (folder / "check_ring.c").write_text(ENDING)
    (folder / "check_race.c").write_text(RACE.replace("test_add", "test_other"))
    return folder


@pytest.fixture
def folder(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(built)
    return built


def test_tests_that_end_leave_the_rest_of_the_budget(folder: Path) -> None:
    done = call("check", "check_ring.c", "--budget", "1h", "--json", "--junit", "j.xml")
    assert done.code == CLEAN
    rows = json.loads(done.out)
    assert rows["not_run"] == []
    for row in rows["tests"]:
        assert row["verdict"] == "clean" and row["budget"]["ended"]
        assert row["budget"]["slices"] == 1
        assert row["budget"]["last_new"] == row["classes"] > 0
    assert (folder / ".pulsar_ml" / "build" / NAME).exists()


def test_a_changed_source_comes_first_and_a_failure_is_reported(folder: Path) -> None:
    files = ("check_ring.c", "check_race.c")
    call("check", "check_ring.c", "--budget", "1h")
    done = call("check", *files, "--budget", "1h")
    assert done.code == VIOLATION
    lines = done.out.splitlines()
    tests = [
        line.partition("  ")[0] for line in lines if line.startswith("check_") and "::" in line
    ]
    assert [test.partition("::")[0] for test in tests] == ["check_race.c"] * 3 + [
        "check_ring.c"
    ] * 2
    last = lines[-1]
    assert last.startswith("4 clean, 1 failed; budget of 3600 s: ") and "not run" not in last
    assert last.count("s (ended)") == 5
    (folder / "check_ring.c").write_text(ENDING + "// changed\n")
    again = call("check", "check_race.c", "check_ring.c", "--budget", "1h")
    assert again.out.startswith("check_ring.c::")


def test_what_a_budget_does_not_reach_is_not_clean(folder: Path) -> None:
    done = call("check", "check_ring.c", "--budget", TOO_SHORT, "--junit", "j.xml")
    assert done.code == NOTHING_EXERCISED
    assert done.out == (
        "0 clean, 2 not run; budget of 1e-06 s: no test; not run: check_ring.c::test_add, "
        "check_ring.c::test_add_again\n"
    )
    root = ElementTree.parse("j.xml").getroot()
    assert (root.get("tests"), root.get("skipped")) == ("2", "2")
    assert {one.get("message") for one in root.iter("skipped")} == {
        "not run: the budget ended first"
    }


@pytest.mark.parametrize(
    "words",
    [
        ("check", "check_ring.c", "--budget", "5m", "--seconds", "3"),
        ("check", "check_ring.c", "--budget", "5m", "--executions", "3"),
        ("check", "check_ring.c", "--budget", "soon"),
        ("explore", "all", "--budget", "5m", "--seeds", "3"),
    ],
)
def test_a_wrong_budget_is_refused(folder: Path, words: tuple[str, ...]) -> None:
    done = call(*words)
    assert done.code == USAGE
    assert "budget" in done.err


def test_pytest_shares_a_budget_and_fails_for_what_it_did_not_reach(folder: Path) -> None:
    said = collected(folder, "check_race.c", budget=("--budget", "1h"))
    assert "1 failed, 2 passed" in said and "data race" in said
    assert "budget of 3600 s: test_other " in said and said.count("s (ended)") == 3
    short = collected(folder, "check_ring.c", budget=("--budget", TOO_SHORT))
    assert "2 failed" in short and "not run: the budget ended before its first execution" in short
    assert "s: no test; not run: 2" in short


TWO = """#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int value;
int plain;
static void *look(void *unused)
{
    int seen = atomic_load_explicit(&value, memory_order_relaxed);
    assert(seen != 1);
    if (seen == 2) plain = 1;
    return unused;
}
void test_two(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, look, 0);
    atomic_store_explicit(&value, 1, memory_order_relaxed);
    atomic_store_explicit(&value, 2, memory_order_relaxed);
    plain = 2;
    pthread_join(thread, 0);
}
"""


def test_a_known_failure_hides_no_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("check_two.c").write_text(TWO)
    command = ("check", "check_two.c", "--executions", "300", "--json")
    first = json.loads(call(*command).out)["tests"][0]
    file = str(known_file(tmp_path / "known.toml", first["signature"]))
    second = json.loads(call(*command, "--baseline", file).out)
    (row,) = second["tests"]
    assert second["exit_code"] == VIOLATION and row["known"] == ""
    assert {first["kind"], row["kind"]} == {"data race", "assertion"}
    assert row["met"][first["signature"]] >= 1
    assert {one["status"] for one in second["baseline"]} == {"new", "known"}
    said = collected(tmp_path, "--baseline", file, budget=("--executions", "300"))
    assert "1 failed" in said and f"ended in a known failure ({first['kind']})" in said
    # With both known, nothing is new, and all executions are made.
    (tmp_path / "known.toml").write_text(
        "".join(
            f'[[known]]\nsignature = "{name}"\nreason = "old"\nuntil = 9999-12-31\n'
            for name in (first["signature"], row["signature"])
        )
    )
    both = call(*command[:-1], "--baseline", file)
    assert both.code == CLEAN
    assert "executions of 300 ended in a known failure" in both.out
    assert "baseline: 0 new, 2 known" in both.out

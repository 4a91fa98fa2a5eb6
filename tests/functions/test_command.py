"""``pulsar-ml check``: exit codes, the choice of tests, JSON, and replays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pulsar_ml.exit_codes import (
    CLEAN,
    FAILED,
    INTERRUPTED,
    NOTHING_EXERCISED,
    USAGE,
    VIOLATION,
)
from pulsar_ml.terminal.progress import ProgressDisplay
from tests.commands import Called, call

RING = """#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int shared;
int plain;

static void *add(void *unused) { shared++; return unused; }
static void *write_plain(void *unused) { plain = 1; return unused; }

static void run(void *(*body)(void *))
{
    pthread_t thread;
    pthread_create(&thread, 0, body, 0);
    body(0);
    pthread_join(thread, 0);
}

void test_add(void) { run(add); assert(shared == 2); }
void test_add_again(void) { run(add); assert(shared == 2); }
"""
RACE = RING + "void test_race(void) { run(write_plain); }\n"
ALONE = "void test_alone(void) { }\n"
BROKEN = "void test_broken(void) { undeclared = 1; }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "ring.c": RING,
        "race.c": RACE,
        "alone.c": ALONE,
        "broken.c": BROKEN,
        "empty.c": "int main(void) { return 0; }\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*words: str) -> Called:
    return call("check", "--executions", "300", *words)


def test_a_clean_file(folder: Path) -> None:
    done = run("ring.c")
    assert done.code == CLEAN
    assert "ring.c::test_add  clean: 300 executions, " in done.out
    assert done.out.rstrip().endswith("2 clean")


def test_a_bound_that_left_something_out_stands_beside_clean(folder: Path) -> None:
    (folder / "many.c").write_text(
        RING.replace("shared++;", "for (int i = 0; i < 9; i++) atomic_store_explicit("
                     "&shared, i, memory_order_relaxed);")
        .replace("assert(shared == 2);", "atomic_load_explicit(&shared, memory_order_relaxed);")
    )  # fmt: skip
    assert "clean" in run("many.c").out
    assert "8 stores remembered of a location" in run("many.c").out
    assert "stores remembered" not in run("ring.c").out


def test_a_violation_and_its_replay(folder: Path) -> None:
    done = run("race.c")
    assert done.code == VIOLATION
    assert "race.c::test_race  data race at execution 1 of seed 0" in done.out
    assert "plain = 1" in done.out
    assert "2 clean, 1 failed" in done.out
    (record,) = (folder / ".pulsar_ml" / "failures").iterdir()
    again = run("race.c::test_race", "--replay", str(record))
    assert again.code == VIOLATION
    assert "made again, step by step" in again.out
    mended = RACE.replace("int plain", "_Atomic int plain")
    (folder / "race.c").write_text(mended)
    after = run("race.c", "--replay", str(record))
    assert after.code == CLEAN
    assert "this is not the build that failed; the execution ended without a failure" in after.out
    other = run("ring.c", "--replay", str(record))
    assert other.code == USAGE
    assert "is of the test 'test_race', which none of the files has" in other.err


def test_nothing_exercised(folder: Path) -> None:
    done = run("alone.c")
    assert done.code == NOTHING_EXERCISED
    assert "nothing exercised in 300 executions" in done.out
    assert "0 clean, 1 exercised nothing" in done.out


def test_a_file_without_tests(folder: Path) -> None:
    done = run("empty.c")
    assert done.code == NOTHING_EXERCISED
    assert "empty.c: no function test_*() was found" in done.err
    (folder / "near.c").write_text("int test_it(void) { return 0; }\n")
    near = run("near.c")
    assert near.code == NOTHING_EXERCISED
    assert "no function test_*() was found; test_it in line 1 returns int" in near.err
    (folder / "sub").mkdir()
    none = run("sub")
    assert none.code == NOTHING_EXERCISED and "sub: no file test_*, *_test or check_*" in none.err
    part = run("ring.c", "-k", "zzz")
    assert part.code == NOTHING_EXERCISED
    assert "ring.c: no function test_*() with 'zzz' in its name was found" in part.err


def test_a_file_that_cannot_be_built_costs_the_others_nothing(folder: Path) -> None:
    done = run("broken.c", "ring.c")
    assert done.code == FAILED
    assert "broken.c:1:" in done.err
    assert "tests.c" not in done.err, "the generated file is not the reader's"
    assert "undeclared" in done.err
    assert "ring.c::test_add  clean" in done.out
    assert "2 clean, 1 file not built" in done.out


def test_choice_by_name(folder: Path) -> None:
    one = run("race.c::test_add")
    assert one.code == CLEAN
    assert "1 clean" in one.out
    part = run("race.c", "-k", "add")
    assert part.code == CLEAN
    assert "2 clean" in part.out
    typo = run("race.c::test_ad")
    assert typo.code == USAGE
    assert "race.c has no test 'test_ad'; did you mean test_add" in typo.err


def test_a_folder_stands_for_its_test_files(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "test_ring.c").write_text(RING)
    (folder / "sub" / "helper.c").write_text(RACE)
    done = run("sub")
    assert done.code == CLEAN
    assert "sub/test_ring.c::test_add" in done.out
    assert "helper.c" not in done.out


def test_json(folder: Path) -> None:
    done = run("race.c", "--json")
    assert done.code == VIOLATION
    answer = json.loads(done.out)
    assert answer["exit_code"] == VIOLATION
    rows = {row["test"]: row for row in answer["tests"]}
    assert rows["test_add"]["verdict"] == "clean"
    assert rows["test_add"]["executions"] == 300
    assert rows["test_add"]["record"] is None
    assert rows["test_race"]["kind"] == "data race"
    assert rows["test_race"]["line"] == RACE.splitlines().index(RACE.splitlines()[-1]) + 1
    assert Path(rows["test_race"]["record"]).is_file()


def test_options_reach_the_engine_and_override_comments(folder: Path) -> None:
    assert run("race.c", "--no-races").code == CLEAN
    passed = run("race.c", "--suppress", "write_plain")
    assert passed.code == CLEAN
    assert "known races were passed over" in passed.out
    (folder / "ring.c").write_text(f"// check: executions=7\n\n{RING}")
    without = call("check", "ring.c")
    assert "clean: 7 executions" in without.out
    assert "clean: 300 executions" in run("ring.c").out
    (folder / "ring.c").write_text(f"// check: stores=99\n\n{RING}")
    done = run("ring.c")
    assert done.code == USAGE and "stores" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("zzz.c",), "zzz.c"),
        (("zzz",), "there is no file or folder zzz"),
        (("ring.rs",), "'ring.rs' is no file of test functions"),
        (("ring.c", "--no-sandbox"), "No such option '--no-sandbox'"),
        (("ring.c", "--mode", "rc11"), "rc11"),
        (("ring.c", "--pkg-config", "no-such-package-anywhere"), "--pkg-config"),
    ],
)
def test_misuse_is_named(folder: Path, words: tuple[str, ...], message: str) -> None:
    (folder / "ring.rs").touch()
    done = run(*words)
    assert done.code == USAGE
    assert message in done.err


def test_semantics_of_python_do_not_stop_other_tests(folder: Path) -> None:
    assert run("ring.c::test_add", "--semantics", "free").code == CLEAN


def test_a_test_that_the_engine_does_not_control_costs_the_others_nothing(folder: Path) -> None:
    (folder / "ring.c").write_text(
        RING + "#include <stdio.h>\n"
        'void test_file(void) { FILE *f = fopen("count", "a+"); fputc(\'x\', f); fclose(f);\n'
        '    f = fopen("count", "r"); while (fgetc(f) == \'x\') shared++; fclose(f); run(add); }\n'
    )
    done = run("ring.c")
    assert done.code == FAILED
    assert "ring.c::test_file  no verdict: " in done.err
    assert "2 clean, 1 without a verdict" in done.out


def test_progress_of_a_long_test_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(ProgressDisplay, "update", lambda self, done, text="": seen.append(done))
    assert call("check", "ring.c::test_add", "--executions", "5000").code == CLEAN
    assert seen == sorted(seen) and seen[-1] == 5000


def test_an_interrupt_keeps_what_was_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt arrives while the second test runs."""

    def interrupt(self: object, done: float, text: str = "") -> None:
        if calls:
            raise KeyboardInterrupt
        if done >= 300:
            calls.append(done)

    calls: list[float] = []
    monkeypatch.setattr(ProgressDisplay, "update", interrupt)
    done = run("ring.c")
    assert done.code == INTERRUPTED
    assert "ring.c::test_add  clean: 300 executions" in done.out
    assert "ring.c::test_add_again  interrupted: " in done.err
    assert done.out.rstrip().endswith("1 clean")


def test_an_interrupt_while_a_failure_is_shrunk_keeps_the_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*words: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pulsar_ml.harness.functions.check.call", interrupted)
    done = run("race.c::test_race")
    assert done.code in (VIOLATION, INTERRUPTED)
    assert "race.c::test_race  data race" in done.out
    assert len(list((folder / ".pulsar_ml" / "failures").iterdir())) == 1

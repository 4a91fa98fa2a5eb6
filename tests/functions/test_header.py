"""``pulsar_ml/check.h``: threads, choices, assumptions and notes, in C, C++ and Cython."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.harness.functions.check import (
    Checked,
    build_tests,
    check_function,
    replayed_text,
)
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from tests import ROOT
from tests.commands import call

HEADER = Path(__file__).with_name("header.cpp")
BUILDS = ROOT / "build" / "functions"
EXECUTIONS = 3_000


def subject_of(test: str) -> Subject:
    return build_tests(read_source(HEADER), into=BUILDS)[test]


def checked(test: str, **options: Any) -> Checked:
    source = read_source(HEADER)
    (function,) = (each for each in source.tests if each.name == test)
    return check_function(
        HEADER, function, subject_of(test), **{"executions": EXECUTIONS, **options}
    )


def test_threads_are_joined() -> None:
    assert checked("test_threads").verdict == "clean"


def test_a_choice_is_explored_replayed_and_shrunk() -> None:
    result = checked("test_choose_buggy")
    assert result.failure is not None
    assert "chooses 199 of 0 to 999" in result.text  # 199 + 1 is the smallest sum that fails
    assert "made again, step by step" in result.text
    again, text = replayed_text(result.failure, subject_of("test_choose_buggy"), None)
    assert again.exact
    assert "chooses 199 of 0 to 999" in text


def test_choices_of_threads_do_not_share_a_value() -> None:
    result = checked("test_choose_in_threads_buggy")
    assert result.failure is not None
    assert "chooses 3 of 0 to 3" in result.text
    assert "chooses 2 of 0 to 3" in result.text


def test_a_search_tries_all_values() -> None:
    subject = subject_of("test_choose_twice")
    done = explore(
        subject,
        Program.of_test(subject),
        executions=EXECUTIONS,
        mode="sc",
        strategy="preemptions",
        bound=9,
    )
    assert done.failure is None
    assert done.exhausted == "completely"
    # Two orders of the stores for each of 3 * 2 pairs of values.
    assert done.statistics["classes"] == 12


def test_a_choice_from_nothing_is_a_failure() -> None:
    result = checked("test_choose_from_none_buggy")
    assert result.failure is not None
    assert "check::choose() takes a number of options from 1 to 65535" in result.failure.message


def test_executions_without_the_assumption_are_discarded_and_counted() -> None:
    done = checked("test_assume").exploration
    assert done.verdict == "clean"
    discarded = done.statistics["discarded"]
    assert EXECUTIONS / 3 < discarded < 2 * EXECUTIONS / 3
    assert done.counting == EXECUTIONS - discarded
    assert done.residual_risk == pytest.approx(3 / done.counting)
    assert f"{discarded:,} of 3,000 executions were discarded" in " ".join(done.remarks)
    behind = checked("test_assume_behind_threads")
    assert behind.verdict == "clean"
    assert f"{behind.exploration.statistics['discarded']:,} discarded" in behind.describe()


def test_an_assumption_that_never_holds_exercises_nothing() -> None:
    result = checked("test_assume_never_holds")
    assert result.verdict == "nothing_exercised"
    assert "an assumption held in none of 3,000 executions" in result.describe()
    assert "test_assume_never_holds() functions/header.cpp:" in result.describe()
    assert result.exploration.statistics["shared"] == 0


def test_notes_are_in_the_trace_only() -> None:
    result = checked("test_notes_buggy")
    assert result.failure is not None
    for text in (
        "begins",
        "a number -7",
        "a colour 1",
        "a half 0.5",
        "a text words",
        "a string more words",
        "true 1",
        "large 18446744073709551615",
    ):
        assert f"note: {text}  header.cpp:" in result.text
    assert result.exploration.statistics["hooks"] > 0


C = """#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <pulsar_ml/check.h>

struct ring { _Atomic int head; int slots[4]; };
static void produce(void *of) { struct ring *ring = of; ring->slots[2] = 1; ring->head = 1; }
static void consume(void *of) {
    struct ring *ring = of;
    check_note("half", 0.5f);
    check_note("head", ring->head);
    check_note("text", "words");
}
void test_ring(void) {
    struct ring *ring = calloc(1, sizeof(struct ring));
    int rounds = check_choose(9);
    check_assume(rounds > 3);
    check_name(*ring, "the ring");
    check_threads(ring, produce, consume);
    assert(rounds < LIMIT);
    free(ring);
}
"""


@pytest.mark.parametrize("limit", [5, 9])
def test_in_c(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "ring.c"
    path.write_text(f"// check: executions=300 flags=-DLIMIT={limit}\n\n{C}")
    done = call("check", str(path), "--into", str(tmp_path))
    if limit == 9:
        assert done.code == 0
        assert "discarded" in done.out
        return
    assert "chooses 5 of 0 to 8" in done.out
    for text in ("note: half 0.5", "note: head ", "note: text words", "the ring.head <- 1"):
        assert text in done.out


PYX = """
from pulsar_ml.harness cimport check
cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)

cdef int counter = 0

cdef void* add(void* argument) noexcept nogil:
    global counter
    counter += 1
    return NULL

cdef int test_add() except -1 nogil:
    cdef pthread_t thread
    value = check.choose(6)
    check.assume(value != 0)
    check.note(b"value", value)
    pthread_create(&thread, NULL, add, NULL)
    pthread_join(thread, NULL)
    if value > 3:
        raise ValueError("too large")
    return 0

def test_with_the_gil():
    cdef pthread_t thread
    value = check.choose(3)
    check.assume(value != 1)
    with nogil:
        pthread_create(&thread, NULL, add, NULL)
        pthread_join(thread, NULL)
    assert counter == 1

cdef int test_race() except -1 nogil:
    cdef pthread_t thread
    pthread_create(&thread, NULL, add, NULL)
    add(NULL)
    pthread_join(thread, NULL)
    return 0
"""


def test_in_cython(tmp_path: Path) -> None:
    path = tmp_path / "some.pyx"
    path.write_text(PYX)
    done = call("check", str(path), "--into", str(tmp_path), "--executions", "300")
    assert "ValueError: too large" in done.out
    assert "chooses 4 of 0 to 5" in done.out
    assert "note: value 4" in done.out
    assert "location: counter" in done.out
    assert "test_with_the_gil  clean: 300 executions" in done.out
    assert "discarded: an assumption did not hold" in done.out.partition("test_with_the_gil")[2]


PLAIN = """#include <pulsar_ml/check.h>
#include <assert.h>
{extra}
int main(void) {{
    int value = {space}choose(3);
    assert(value >= 0 && value < 3);
    {body}
    {space}assume({holds});
    return 0;
}}
"""
PLAIN_C = PLAIN.format(
    extra="static void add(void *of) { __atomic_add_fetch((int *)of, 1, __ATOMIC_RELAXED); }",
    body='int x = 0; check_threads(&x, add, add); assert(x == 2); check_note("x", x); '
    'check_name(x, "x");',
    space="check_",
    holds="{holds}",
)
PLAIN_CPP = PLAIN.format(
    extra="#include <atomic>",
    body="std::atomic<int> x{{0}}; check::threads([&] {{ ++x; }}, [&] {{ ++x; }}); assert(x == 2); "
    'check::note("x", x.load()); check::name(x, "x");',
    space="check::",
    holds="{holds}",
)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_outside_a_checked_build_it_is_plain_code(tmp_path: Path, language: str) -> None:
    compiler = shutil.which(os.environ.get("CXX" if language == "c++" else "CC", "c++"))
    assert compiler is not None
    for holds, code in (("1 == 1", 0), ("1 == 2", 77)):
        path = tmp_path / ("plain.cpp" if language == "c++" else "plain.c")
        text = PLAIN_CPP if language == "c++" else PLAIN_C
        path.write_text(text.replace("{holds}", holds).replace("{{", "{").replace("}}", "}"))
        standard = "-std=c++11" if language == "c++" else "-std=c11"
        flags = ["-Wall", "-Wextra", "-Werror", "-pthread", "-x", language, standard, f"-I{ROOT}"]
        subprocess.run([compiler, *flags, str(path), "-o", str(tmp_path / "plain")], check=True)
        done = subprocess.run([str(tmp_path / "plain")], capture_output=True, text=True)
        assert done.returncode == code
        assert ("assumption" in done.stderr) == (code != 0)

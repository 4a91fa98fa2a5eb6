"""Tests in C++, C and Cython may use what programs use: each execution begins like a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_ml.harness.functions.check import build_tests, check, check_function, program_of
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.interleave import InterleavingFailure
from tests import ROOT
from tests.conftest import HAS_CXX

LANGUAGE = Path(__file__).with_name("language.cpp")
BUILDS = ROOT / "build" / "functions"
EXECUTIONS = 500
FAILURES = {
    "test_leak_buggy": ("leak", "allocated at test_leak_buggy()"),
    "test_exception_buggy": ("invariant", "std::runtime_error: x is one"),
    "test_exception_in_thread_buggy": (
        "assertion",
        "nothing catches std::out_of_range: nobody catches this",
    ),
}

pytestmark = pytest.mark.skipif(not HAS_CXX, reason="no C++ compiler")


@pytest.mark.parametrize("test", [test.name for test in read_source(LANGUAGE).tests])
def test_cpp(test: str) -> None:
    subjects = build_tests(read_source(LANGUAGE), into=BUILDS)
    if test == "test_conditional":
        assert test not in subjects
        return
    subject = subjects[test]
    done = explore(subject, program_of(subject), executions=EXECUTIONS, reuse="mixed")
    if test in FAILURES:
        kind, message = FAILURES[test]
        assert done.failure is not None
        assert done.failure.kind == kind
        assert message in done.failure.message
    else:
        assert done.failure is None, done.failure
        assert done.verdict == "clean"


C_HEAD = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n"
STARTED = (
    "static int counter;\nint *kept;\n"
    "static void *add(void *lock) { pthread_mutex_lock(lock); counter++;"
    " pthread_mutex_unlock(lock); return 0; }\n"
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
    "static void two(void) { pthread_t t; pthread_create(&t, 0, add, &lock); add(&lock);"
    " pthread_join(t, 0); }\n"
)


def write(folder: Path, text: str, name: str = "some.c") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_global_variables_of_c_are_put_back(tmp_path: Path) -> None:
    text = f"{C_HEAD}{STARTED}void test_two(void) {{ two(); assert(counter == 2); }}\n"
    (result,) = check(write(tmp_path, text), into=tmp_path, executions=300)
    assert result.verdict == "clean"
    wrong = text.replace("counter == 2", "counter == 4")
    with pytest.raises(InterleavingFailure, match="counter == 4"):
        check(write(tmp_path, wrong, "wrong.c"), into=tmp_path, executions=300)


@pytest.mark.parametrize("lost", [False, True])
def test_memory_that_a_global_variable_leads_to_is_no_leak(tmp_path: Path, lost: bool) -> None:
    forget = "kept = 0;" if lost else ""
    text = (
        f"{C_HEAD}{STARTED}void test_two(void) {{ kept = malloc(4); *kept = 1; two(); {forget} }}\n"
    )
    path = write(tmp_path, text)
    if lost:
        with pytest.raises(InterleavingFailure, match="leak"):
            check(path, into=tmp_path, executions=300)
    else:
        check(path, into=tmp_path, executions=300)


def test_memory_behind_other_memory_is_no_leak(tmp_path: Path) -> None:
    text = (
        f"{C_HEAD}{STARTED}void **list;\n"
        "void test_two(void) { void **inner = malloc(16); inner[1] = malloc(8); inner[0] = 0;"
        " list = malloc(8); *list = inner; two(); }\n"
    )
    check(write(tmp_path, text), into=tmp_path, executions=300)


PYX = """# cython: language_level=3
cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)

cdef pthread_mutex_t lock
cdef int counter = 0
cdef object words = []


cdef void* add(void* argument) noexcept nogil:
    global counter
    pthread_mutex_lock(&lock)
    counter += 1
    pthread_mutex_unlock(&lock)
    return NULL


cdef int two() except -1 nogil:
    cdef pthread_t thread
    pthread_create(&thread, NULL, add, NULL)
    add(NULL)
    pthread_join(thread, NULL)
    if counter != 2:
        raise RuntimeError("a variable of the execution before")
    return 0


def test_variables():
    words.append(1)
    with nogil:
        two()


cdef int test_without_gil() except -1 nogil:
    return two()


def test_raises():
    with nogil:
        two()
    raise KeyError("the message")


cdef void test_drops() noexcept nogil:
    two()
    with gil:
        raise ValueError("of noexcept")
"""


def test_cython(tmp_path: Path) -> None:
    source = read_source(write(tmp_path, PYX, "some.pyx"))
    subjects = build_tests(source, into=tmp_path / "build")
    for test in source.tests:
        result = check_function(source.path, test, subjects[test.name], executions=300)
        if test.name in ("test_variables", "test_without_gil"):
            assert result.failure is None, result.text
            continue
        message = {"test_raises": "KeyError: 'the message'", "test_drops": "ValueError: of"}
        assert result.failure is not None
        assert message[test.name] in result.failure.message
        assert "made again, step by step" in result.text

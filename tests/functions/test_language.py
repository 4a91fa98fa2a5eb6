"""Tests in C++, C and Cython may use what programs use: each execution begins like a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_ml.harness.functions.check import build_tests, check, check_function
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.interleave import InterleavingFailure
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT

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


@pytest.mark.parametrize("test", [test.name for test in read_source(LANGUAGE).tests])
def test_cpp(test: str) -> None:
    subjects = build_tests(read_source(LANGUAGE), into=BUILDS)
    if test == "test_conditional":
        assert test not in subjects
        return
    subject = subjects[test]
    done = explore(subject, Program.of_test(subject), executions=EXECUTIONS, reuse="mixed")
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


@pytest.mark.parametrize("forgotten", [False, True])
def test_memory_that_a_global_variable_leads_to_is_no_leak(tmp_path: Path, forgotten: bool) -> None:
    forget = "kept = 0;" if forgotten else ""
    text = (
        f"{C_HEAD}{STARTED}void test_two(void) {{ kept = malloc(4); *kept = 1; two(); {forget} }}\n"
    )
    path = write(tmp_path, text)
    if forgotten:
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

cdef struct Pair:
    int first
    long second

cdef pthread_mutex_t lock
cdef int counter = 0
cdef Pair pair
cdef object words = []


cdef void* add(void* argument) noexcept nogil:
    global counter
    pthread_mutex_lock(&lock)
    counter += 1
    pair.first += 1
    pair.second += 1
    pthread_mutex_unlock(&lock)
    return NULL


cdef int two() except -1 nogil:
    cdef pthread_t thread
    pthread_create(&thread, NULL, add, NULL)
    add(NULL)
    pthread_join(thread, NULL)
    if counter != 2 or pair.first != 2 or pair.second != 2:
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


CONTAINERS = """# distutils: language=c++
from libcpp.map cimport map as cppmap
from libcpp.string cimport string
from libcpp.vector cimport vector
cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)

cdef pthread_mutex_t lock
cdef vector[int] numbers
cdef vector[int] empty
cdef cppmap[int, string] words
cdef string name = b"a string that is too long to be kept in its object"
numbers.push_back(1)
words[1] = b"a string that is too long to be kept in the map"


cdef void* add(void* argument) noexcept nogil:
    pthread_mutex_lock(&lock)
    numbers[0] += 1
    numbers.push_back(3)
    empty.push_back(4)
    words[2].append(name)
    words[1].append(words[2])
    name.append(words[1])
    pthread_mutex_unlock(&lock)
    return NULL


cdef int test_containers() except -1 nogil:
    cdef pthread_t thread
    pthread_create(&thread, NULL, add, NULL)
    add(NULL)
    pthread_join(thread, NULL)
    if numbers.size() != 3 or numbers[0] != 3 or empty.size() != 2 or words.size() != 2:
        raise RuntimeError("the containers of the execution before")
    if words[1].size() > 600 or name.size() > 1200:
        raise RuntimeError("the strings of the execution before")
    return 0
"""
FREED = """# distutils: language=c++
from libcpp.vector cimport vector
cdef extern from *:
    \"\"\"
    #include <cstdlib>
    static void free_content(void *of) { free(*(void **)of); }
    \"\"\"
    void free_content(void*) nogil

cdef vector[int] numbers
numbers.push_back(1)


cdef void test_freed() noexcept nogil:
    free_content(&numbers)
    AGAIN
"""


def test_a_container_that_was_filled_at_import_is_put_back(tmp_path: Path) -> None:
    (result,) = check(write(tmp_path, CONTAINERS, "some.pyx"), into=tmp_path, executions=300)
    assert result.verdict == "clean"


def test_a_block_of_the_import_is_freed_once(tmp_path: Path) -> None:
    once = write(tmp_path, FREED.replace("AGAIN", ""), "once.pyx")
    with pytest.raises(AssertionError, match="nothing exercised in 10 executions"):
        check(once, into=tmp_path, executions=10)
    twice = write(tmp_path, FREED.replace("AGAIN", "free_content(&numbers)"), "twice.pyx")
    with pytest.raises(InterleavingFailure, match="double free"):
        check(twice, into=tmp_path, executions=10)


def test_the_race_of_a_library_is_passed_over_and_counted() -> None:
    header = LANGUAGE.with_name("header.cpp")
    subjects = build_tests(read_source(header), into=BUILDS)
    clean = subjects["test_atomic_shared_pointer"]
    done = explore(clean, Program.of_test(clean), executions=EXECUTIONS)
    assert done.failure is None
    assert done.statistics["suppressed"] > 0
    assert "std::atomic<std::shared_ptr> of libstdc++" in " ".join(done.remarks)
    buggy = subjects["test_atomic_shared_pointer_buggy"]
    found = explore(buggy, Program.of_test(buggy), executions=EXECUTIONS)
    assert found.failure is not None
    assert found.failure.kind == "data race"
    assert "header.cpp" in found.failure.where[0]
    assert found.failure.replay(buggy).exact

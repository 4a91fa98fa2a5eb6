"""Digests of sources: words, layout and moves change none, and every change of meaning does."""

from __future__ import annotations

from pathlib import Path

import pytest

from stress.mutants.sources.declarations import cython_declarations, declarations
from stress.mutants.sources.digests import digest_of

CYTHON = '''\
"""A counter."""

from libc.stdint cimport int64_t
from pulsar_ml.sync.atomics cimport i64_load_acquire, pml_i64
from pulsar_ml.sync.bits cimport lowest as first


cdef extern from "pulsar_ml/sync/sync.h" nogil:
    int LIMIT


cdef extern from *:
    """
    /* a number */
    #define MOST 8
    """
    int MOST


cdef inline bint counter_fits(const pml_i64* counter, int64_t n) noexcept nogil:
    # Never above the limit.
    if n < LIMIT:
        n += i64_load_acquire(counter)
        n += 1
    return n <= MOST


cdef inline int64_t counter_twice(int64_t n) noexcept nogil:
    return n + n
'''
C = """\
#ifndef PULSAR_ML_COUNTER_H
#define PULSAR_ML_COUNTER_H
#include <stdint.h>
#include "pulsar_ml/sync/sync.h"

/* Never above this. */
#define LIMIT 8

struct counter { int64_t n; };

#ifdef SMALL
static const int64_t most = 4;
#else
static const int64_t most = 8;
#endif

static int64_t twice(int64_t n) {
    return n + n; // the same word
}

static int fits(struct counter *c) { return c->n <= most; }
#endif
"""
PYTHON = '''\
"""A counter."""

from __future__ import annotations

from pulsar_ml.specs.base import Answer
from pulsar_ml.specs.words import least as smallest


class Model:
    """One number."""

    def fits(self, n: int) -> Answer:
        """True below the limit."""
        # Never above it.
        return (n < 8, "a" if n else "b")


def twice(n: int) -> int:
    return n + n
'''
SOURCES = {"counter.pxd": CYTHON, "counter.h": C, "counter.py": PYTHON}

SAME = [
    ("counter.pxd", "# Never above the limit.", "# At most the limit."),
    ("counter.pxd", '"""A counter."""', '"""Another\n\ntext."""\n# and a comment'),
    ("counter.pxd", "(const pml_i64* counter, int64_t n)", "(\n    const pml_i64* counter,\n    int64_t n)"),
    ("counter.pxd", "n += i64_load", "n  +=   i64_load"),
    ("counter.pxd", "pulsar_ml.sync.atomics", "pulsar_ml.atomics.words"),
    ("counter.pxd", "pulsar_ml.sync.bits", "pulsar_ml.sync.masks.bits"),
    ("counter.pxd", "pulsar_ml/sync/sync.h", "pulsar_ml/primitives/sync.h"),
    ("counter.pxd", "/* a number */", "/* of a kind */"),
    (
        "counter.pxd",
        "(int64_t n) noexcept nogil:\n    return n + n",
        "(int64_t m) noexcept nogil:\n    return m + m",
    ),
    ("counter.h", "/* Never above this. */", "// at\n// most\n"),
    ("counter.h", "return n + n; // the same word", "return\n    n + n;"),
    ("counter.h", "pulsar_ml/sync/sync.h", "pulsar_ml/primitives/sync.h"),
    ("counter.h", "PULSAR_ML_COUNTER_H", "PULSAR_ML_ROOM_COUNTER_H"),
    ("counter.h", "#define LIMIT 8", "#define  LIMIT \\\n    8"),
    ("counter.py", '"""One number."""', '"""A number, counted."""'),
    ("counter.py", '        """True below the limit."""\n', ""),
    ("counter.py", "pulsar_ml.specs.base", "pulsar_ml.models.base"),
    ("counter.py", "(n < 8, ", "(\n            n < 8,\n            "),
    ("counter.py", '"a" if n else "b"', "('a' if n else 'b')"),
]  # fmt: skip
OTHER = [
    ("counter.pxd", "n <= MOST", "n < MOST"),
    ("counter.pxd", "        n += 1\n", "    n += 1\n"),  # out of the condition
    ("counter.pxd", "i64_load_acquire(counter)", "i64_load_relaxed(counter)"),
    ("counter.pxd", "#define MOST 8", "#define MOST 9"),
    ("counter.pxd", "lowest as first", "highest as first"),
    ("counter.pxd", "from libc.stdint cimport int64_t", "from libc.stdint cimport int32_t"),
    ("counter.pxd", "counter_twice", "counter_thrice"),
    ("counter.pxd", "return n + n", "return n + LIMIT"),
    ("counter.h", "c->n <= most", "c->n < most"),
    ("counter.h", "#ifdef SMALL", "#ifndef SMALL"),
    ("counter.h", "int64_t most = 4", "int64_t most = 3"),
    ("counter.h", "#define LIMIT 8", "#define LIMIT 9"),
    ("counter.h", "<stdint.h>", "<inttypes.h>"),
    ("counter.py", "n < 8", "n <= 8"),
    ("counter.py", '"a" if', '"c" if'),
    ("counter.py", "least as smallest", "most as smallest"),
]


def source(name: str) -> list[str]:
    return declarations(Path(name), SOURCES[name])


def changed(name: str, old: str, new: str) -> list[str]:
    text = SOURCES[name]
    assert old in text
    return declarations(Path(name), text.replace(old, new))


@pytest.mark.parametrize(("name", "old", "new"), SAME)
def test_words_layout_and_paths_change_nothing(name: str, old: str, new: str) -> None:
    assert changed(name, old, new) == source(name)


@pytest.mark.parametrize(("name", "old", "new"), OTHER)
def test_a_change_of_meaning_is_seen(name: str, old: str, new: str) -> None:
    assert changed(name, old, new) != source(name)


def test_each_declaration_is_separate() -> None:
    assert [len(source(name)) for name in SOURCES] == [6, 6, 4]


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("counter.pxd", "cdef inline int64_t counter_twice"),
        ("counter.h", "static int fits"),
        ("counter.py", "def twice"),
    ],
)
def test_a_function_that_moves_to_another_file_changes_nothing(
    name: str, head: str, tmp_path: Path
) -> None:
    whole, first, second = (tmp_path / f"{part}{name}" for part in ("whole_", "first_", "second_"))
    text, cut = SOURCES[name], SOURCES[name].index(head)
    end = text.index("#endif", cut) if name.endswith(".h") else len(text)
    whole.write_text(text)
    first.write_text(text[:cut] + text[end:])
    second.write_text(text[cut:end])
    assert digest_of([first, second]) == digest_of([whole])
    assert digest_of([first]) != digest_of([whole])


LOCALS = """\
cdef inline int64_t sum_of(const Pair* pair, int64_t n = 3, void (*call)(int64_t) = NULL) noexcept nogil:
    cdef int64_t a = pair.a, b, more[4]
    for b in range(n):
        a += give(b, a=pair.b) + more[a]
    return a
"""


def test_names_of_parameters_and_local_variables_do_not_matter() -> None:
    before = cython_declarations(LOCALS)
    other = LOCALS.replace("int64_t a = pair.a, b, more", "int64_t c = pair.a, d, rest")
    other = other.replace("for b", "for d").replace("a += give(b, a=", "c += give(d, a=")
    other = other.replace("more[a]", "rest[c]").replace("return a", "return c")
    other = other.replace("n = 3", "count = 3").replace("range(n)", "range(count)")
    assert cython_declarations(other) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return a", "return b"),
        ("pair.a,", "pair.b,"),
        ("a=pair.b", "b=pair.b"),
        ("int64_t a =", "int32_t a ="),
        ("(*call)", "(*done)"),
        ("range(n)", "range(a)"),
        ("Pair", "Triple"),
    ],
)
def test_names_of_everything_else_matter(old: str, new: str) -> None:
    assert old in LOCALS
    assert cython_declarations(LOCALS.replace(old, new)) != cython_declarations(LOCALS)


def test_a_string_with_a_mark_of_a_comment_is_a_string() -> None:
    path = Path("f.pxd")
    one, two = (declarations(path, f"x = 'a # {word}'\n") for word in ("b", "c"))
    assert one != two

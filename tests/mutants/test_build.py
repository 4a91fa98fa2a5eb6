"""The mutant build: one switch a mutant, anchors that occur exactly once, the rest unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT, AnchorError, build, mutated
from stress.mutants.catalogue import CATALOGUE, Mutant

SOURCE = """\
# A file.

from libc.stdint cimport int64_t


cdef inline int64_t twice(int64_t n) noexcept nogil:
    if n:
        n += n
    return n


cdef inline int64_t thrice(int64_t n) noexcept nogil:
    return 3 * n
"""


def mutant(old: str, new: str, **more: Any) -> Mutant:
    return Mutant(
        id="X", title="", origin="", file="f.pxd", old=old, new=new, suite="", breaks="", **more
    )


def test_an_anchor_becomes_a_choice_at_its_own_depth() -> None:
    text = mutated(SOURCE, [(7, mutant("n += n", "n += 1"))])
    assert (
        "        if pml_mutant == 7:\n            n += 1\n        else:\n            n += n\n"
        in text
    )
    assert text.count("cimport pml_mutant") == 1


def test_mutants_may_share_an_anchor() -> None:
    text = mutated(
        SOURCE, [(0, mutant("return 3 * n", "return 0")), (1, mutant("return 3 * n", "return 1"))]
    )
    assert (
        "    if pml_mutant == 0:\n        return 0\n    elif pml_mutant == 1:\n        return 1\n"
        "    else:\n        return 3 * n\n" in text
    )


def test_a_helper_stands_before_the_changed_function() -> None:
    text = mutated(
        SOURCE,
        [
            (
                0,
                mutant(
                    "return 3 * n",
                    "return zero()",
                    helper="cdef inline int64_t zero() noexcept nogil:\n    return 0",
                ),
            )
        ],
    )
    assert text.index("zero() noexcept") < text.index("thrice(")
    assert text.index("twice(") < text.index("zero() noexcept")


@pytest.mark.parametrize("old", ["n -= n", "(int64_t n) noexcept nogil:", "cdef inline int64_t"])
def test_an_anchor_that_is_no_whole_line_or_absent_is_an_error(old: str) -> None:
    with pytest.raises(AnchorError, match="occurs 0 times"):
        mutated(SOURCE, [(0, mutant(old, "pass"))])


def test_comments_of_an_anchor_do_not_matter() -> None:
    source = SOURCE.replace(
        "        n += n\n", "        # Twice.\n\n        n += n  # the number\n"
    )
    for old in ("if n:\n    n += n", "# Why.\nif n:  # always\n    # Once.\n    n += n"):
        text = mutated(source, [(3, mutant(old, "pass"))])
        assert "    if pml_mutant == 3:\n        pass\n    else:\n" in text
        with pytest.raises(AnchorError, match="occurs 0 times"):
            mutated(source.replace("if n:", "if n < 3:"), [(3, mutant(old, "pass"))])


def test_an_anchor_may_be_that_of_one_function() -> None:
    source = SOURCE.replace("    return n\n", "    return 3 * n\n")
    once = mutant("return 3 * n", "return 0", function="twice")
    text = mutated(source, [(7, once)])
    assert text.index("pml_mutant == 7") < text.index("cdef inline int64_t thrice")
    with pytest.raises(AnchorError, match="occurs 2 times"):
        mutated(source, [(7, mutant("return 3 * n", "return 0"))])


def test_an_anchor_that_occurs_twice_is_refused() -> None:
    with pytest.raises(AnchorError, match="occurs 2 times"):
        mutated(SOURCE + "    return 3 * n\n", [(0, mutant("return 3 * n", "pass"))])


def test_anchors_that_overlap_are_refused() -> None:
    with pytest.raises(AnchorError, match="overlaps"):
        mutated(SOURCE, [(0, mutant("if n:\n    n += n", "pass")), (1, mutant("n += n", "pass"))])


def test_every_mutant_names_a_file_a_suite_and_an_anchor_that_exist() -> None:
    for entry in CATALOGUE:
        assert entry.suite in SUITES, entry.id
        mutated((ROOT / "pulsar_ml" / entry.file).read_text(), [(0, entry)])
    assert len({entry.id for entry in CATALOGUE}) == len(CATALOGUE)


def test_the_sources_of_the_product_hold_no_switch() -> None:
    for path in (ROOT / "pulsar_ml").rglob("*.p[xy]*"):
        if path.suffix in {".pxd", ".pyx"}:
            assert "pml_mutant " not in path.read_text(), path


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AnchorError, match=r"no such source file: f\.pxd"):
        build(tmp_path, [mutant("a", "b")])

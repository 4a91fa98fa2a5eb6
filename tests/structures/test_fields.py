"""The field tables of the structures' pages are those of the structs in the sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pulsar_ml.suites.invariants import table
from tests import ROOT

HEAD = "| field | read | written | guard |\n| --- | --- | --- | --- |\n"
PAGES = sorted((ROOT / "docs" / "structures").glob("*.md"))

Structs = dict[str, list[str]]


def structs_of(source: str) -> tuple[Structs, set[str]]:
    """Fields in their order by struct, padding left out, and the structs that have atomic cells."""
    fields: Structs = {}
    atomic = set()
    for struct in re.finditer(r"^cdef (?:packed )?struct (\w+):.*\n((?: .*\n|\n)+)", source, re.M):
        lines = re.sub(r"#.*", "", struct[2]).splitlines()
        fields[struct[1]] = [
            name
            for line in lines
            if line.strip()
            for name in re.findall(r"(\w+)\s*(?:,|$)", line)
            if not name.startswith("apart")
        ]
        if re.search(r"^\s+pml_[iu]\w+|^\s+pml_ptr", "\n".join(lines), re.M):
            atomic.add(struct[1])
    return fields, atomic


def tables_of(page: str) -> dict[str, list[tuple[str, ...]]]:
    """The rows of the tables in the page's section "Fields" by the struct that they are of."""
    section = page.partition("\n## Fields\n")[2].partition("\n## ")[0]
    return {
        match[1]: [
            tuple(cell.strip() for cell in row.strip("| ").split(" | "))
            for row in match[2].splitlines()
        ]
        for match in re.finditer(rf"^`(\w+)`:\n\n{re.escape(HEAD)}((?:\|.*\n)+)", section, re.M)
    }


def mistakes(page: str, fields: Structs, required: set[str]) -> list[str]:
    """The differences between a page and the structs, a sentence each."""
    tables = tables_of(page)
    missing = sorted(required - set(tables))
    found = [f"{struct} has atomic cells and no table" for struct in missing]
    for struct, rows in tables.items():
        if struct not in fields:
            found.append(f"{struct} is no struct of these sources")
            continue
        named = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
        if named != fields[struct]:
            found.append(f"the table of {struct} has {named}, the struct has {fields[struct]}")
        found += [
            f"{struct}, {row[0]}: a cell is empty" for row in rows if len(row) != 4 or not all(row)
        ]
    return found


def sources_of(page: Path, pages: Mapping[str, tuple[str, ...]]) -> tuple[Structs, set[str]]:
    """The structs of a page's structure and of its parts. A part of two pages is of the first."""
    first = {part: name for name, parts in reversed(list(pages.items())) for part in parts}
    fields: Structs = {}
    required: set[str] = set()
    for name in (page.stem, *pages.get(page.stem, ())):
        source = (ROOT / "pulsar_ml" / "structures" / f"{name}.pxd").read_text()
        more, atomic = structs_of(source)
        fields |= more
        if name == page.stem or first[name] == page.stem:
            required |= atomic
    return fields, required


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_are_those_of_the_structs(page: Path) -> None:
    fields, required = sources_of(page, table().pages)
    assert mistakes(page.read_text(), fields, required) == []


def test_every_struct_with_atomic_cells_is_on_a_page() -> None:
    documented = {struct for page in PAGES for struct in tables_of(page.read_text())}
    for source in (ROOT / "pulsar_ml" / "structures").glob("*.pxd"):
        assert structs_of(source.read_text())[1] <= documented, source.stem


# Negative controls ------------------------------------------------------------------------------

SOURCE = """\
cdef struct Cell:           # 16 bytes
    pml_i64 count           # of something
    # A comment alone.
    int32_t first, last
    char[44] apart


cdef struct Plain:
    uint64_t[4] values
"""
ROW = "| `count` | relaxed | relaxed | none |\n"
REST = "| `first`, `last` | plain | plain | the lock |\n"
PAGE = f"# cell\n\n## Fields\n\n`Cell`:\n\n{HEAD}{ROW}{REST}\n## Invariants\n"


def test_structs_are_read_without_comments_and_padding() -> None:
    expected = {"Cell": ["count", "first", "last"], "Plain": ["values"]}
    assert structs_of(SOURCE) == (expected, {"Cell"})
    assert mistakes(PAGE, *structs_of(SOURCE)) == []


@pytest.mark.parametrize(
    ("page", "mistake"),
    [
        (PAGE.replace(ROW, ""), "the struct has"),
        (PAGE.replace("`last`", "`end`"), "the struct has"),
        (PAGE.replace(ROW + REST, REST + ROW), "the struct has"),
        (PAGE.replace("| the lock |", "| |"), "a cell is empty"),
        (PAGE.replace("`Cell`:", "`Other`:"), "Cell has atomic cells and no table"),
        (PAGE.replace("\n## Inv", f"\n`Other`:\n\n{HEAD}{ROW}\n## Inv"), "Other is no struct"),
    ],
)
def test_a_page_that_differs_is_noticed(page: str, mistake: str) -> None:
    assert mistake in "\n".join(mistakes(page, *structs_of(SOURCE)))

"""One table has the invariants' sentences; suites, headers and pages follow it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.suites.invariants import DATA, Invariant, Table, named, read_table, table
from pulsar_ml.suites.registry import SUITES
from stress import invariants
from stress.__main__ import invariants_command
from stress.contracts import header_section, page_list, with_contracts, with_runs
from stress.invariants import PAGE, ROOT, complaints, current_files, page

HERE = Path(__file__).relative_to(ROOT).as_posix()
THIS = f"{HERE}::test_every_file_is_current"
ID = re.compile(r"\b(?:I[1-9]\d*|[A-Z][A-Z0-9]-\d+)\b")


def test_every_invariant_is_mapped() -> None:
    assert list(complaints(table().general, SUITES)) == []


def test_every_file_is_current() -> None:
    stale = [path.name for path, text in current_files().items() if path.read_text() != text]
    assert stale == [], "run python -m stress invariants --write"


def test_the_command_prints_the_page() -> None:
    done = CliRunner().invoke(invariants_command, [])
    assert done.output == PAGE.read_text()


def test_suites_have_the_sentences_of_the_table() -> None:
    for suite in SUITES.values():
        assert suite.invariants == named(" ".join(suite.invariants)), suite.name


# The only home ------------------------------------------------------------------------------------


def spelled_out(sources: Mapping[str, str], ids: Iterable[str]) -> list[str]:
    """Dictionaries that give an id a sentence of their own: `"I1": "..."`."""
    entry = re.compile(rf"""["'](?:{"|".join(ids)})["']\s*:\s*["'(]""")
    return [path for path, text in sources.items() if entry.search(text)]


def test_no_suite_spells_a_sentence_out() -> None:
    sources = {path.name: path.read_text() for path in DATA.parent.glob("*.py")}
    assert spelled_out(sources, table().sentences()) == []
    assert spelled_out({"a.py": '    "MQ-1": "Each handle ..."'}, table().sentences()) == ["a.py"]


def unknown_ids(text: str, known: Iterable[str]) -> set[str]:
    return set(ID.findall(text)) - set(known)


@pytest.mark.parametrize(
    "folder", ["pulsar_ml/structures", "pulsar_ml/operations", "docs/structures"]
)
def test_ids_that_sources_and_pages_name_are_in_the_table(folder: str) -> None:
    wrong = {
        path.name: found
        for path in (ROOT / folder).iterdir()
        if path.suffix in {".pxd", ".md"}
        if (found := unknown_ids(path.read_text(), table().sentences()))
    }
    assert wrong == {}
    assert unknown_ids("MQ-9 is none, I12 is one", table().sentences()) == {"MQ-9"}


# The mapping --------------------------------------------------------------------------------------

ONE = Invariant("I1", "Reads", "it holds", "always")
LISTED = {"thing": Suite(name="thing", subject="thing", summary="", invariants={"I1": "It holds."})}


@pytest.mark.parametrize(
    ("invariant", "suites", "complaint"),
    [
        (ONE, {}, "I1 has no check and no reason"),
        (replace(ONE, tests=(f"{HERE}::test_nothing",)), {}, "which does not exist"),
        (replace(ONE, tests=("tests/none.py::test_nothing",)), {}, "which does not exist"),
        (replace(ONE, waits="thing"), LISTED, "which exists"),
        (replace(ONE, none="nobody can see it"), LISTED, "is checked"),
    ],
)
def test_a_wrong_mapping_is_noticed(
    invariant: Invariant, suites: dict[str, Suite], complaint: str
) -> None:
    (found,) = complaints([invariant], suites)
    assert complaint in found


@pytest.mark.parametrize(
    ("invariant", "suites"),
    [
        (ONE, LISTED),
        (replace(ONE, tests=(THIS,)), {}),
        (replace(ONE, waits="thing"), {}),
        (replace(ONE, none="nobody can see it"), {}),
    ],
)
def test_a_right_mapping_has_no_complaint(invariant: Invariant, suites: dict[str, Suite]) -> None:
    assert list(complaints([invariant], suites)) == []


def test_a_change_of_a_suite_changes_the_page() -> None:
    assert "`thing`" in page([ONE], LISTED)
    assert "`thing`" not in page([ONE], {})


# The table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: text.index("[I105]")], "should be I1 to I105"),
        (lambda text: text.replace('of = ["I12"]', 'of = ["I912"]'), "RF-1 is of .*I912"),
    ],
)
def test_a_wrong_table_is_refused(change: object, message: str) -> None:
    assert callable(change)
    with pytest.raises(UsageError, match=message):
        read_table(change(DATA.read_text()))


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(UsageError, match="no invariants I106, XX-1"):
        named("I1 I106 XX-1")


# Headers and pages --------------------------------------------------------------------------------

SMALL = read_table(DATA.read_text())


def small_tree(root: Path) -> tuple[Table, Path, Path]:
    """A structure with its page, both up to date, and the table of their one invariant."""
    own = tuple(each for each in SMALL.own if each.id == "RF-1")
    small = Table(SMALL.general, own, {})
    header = root / "pulsar_ml" / "structures" / "refcount.pxd"
    described = root / "docs" / "structures" / "refcount.md"
    for path in (header, described):
        path.parent.mkdir(parents=True)
    header.write_text("# Counts.\n#\n" + header_section(own) + "# Ordering     None.\n")
    described.write_text("# refcount\n\n## Invariants\n\n" + page_list("refcount", small))
    return small, header, described


def test_a_changed_sentence_is_noticed_in_header_and_page(tmp_path: Path) -> None:
    small, *paths = small_tree(tmp_path)
    assert all(with_contracts(small, tmp_path)[path] == path.read_text() for path in paths)
    for path in paths:
        path.write_text(path.read_text().replace("publish", "anything"))
        assert with_contracts(small, tmp_path)[path] != path.read_text()
    changed = replace(small, own=(replace(small.own[0], text="it holds"),))
    assert "RF-1 (I12) it holds." in with_contracts(changed, tmp_path)[paths[0]]
    assert "* **RF-1** (I12) It holds." in with_contracts(changed, tmp_path)[paths[1]]


def test_a_file_without_its_section_is_refused(tmp_path: Path) -> None:
    small, header, described = small_tree(tmp_path)
    described.write_text("# refcount\n")
    with pytest.raises(UsageError, match=r"refcount\.md has 0 sections"):
        with_contracts(small, tmp_path)
    header.unlink()
    with pytest.raises(UsageError, match="RF-1 is of refcount, but there is no"):
        with_contracts(small, tmp_path)


def test_runs_of_ids_are_written_with_a_dash() -> None:
    assert with_runs(["I1", "I2", "I3", "I7", "I8"]) == "I1-I3, I7, I8"


def test_the_module_writes_every_structure_with_invariants() -> None:
    written = {path.stem for path in invariants.current_files() if path.suffix == ".pxd"}
    assert written == {each.structure for each in table().own}

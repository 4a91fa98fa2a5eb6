"""Some of the mutated inputs that ``python -m tests.bad_input`` reads, and a parser that fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.errors import BadRecordError, PulsarMlError
from tests.bad_input import mutated
from tests.bad_input.__main__ import main
from tests.bad_input.parsers import PARSERS, Parser, text_file

# Cases that a parser did not survive once.
FOUND = (439, 687, 1557, 10_577, 116_444, 144_418, 197_256, 348_995, 647_392, 936_890)


def test_inputs_are_read_or_refused_in_one_sentence() -> None:
    assert list(mutated.problems(range(300))) == []


def test_inputs_that_were_too_much_once(tmp_path: Path) -> None:
    good = mutated.good_files(tmp_path)
    with mutated.patience():
        for number in FOUND:
            name, content = mutated.case(good, number)
            assert mutated.problem(good[name], content) is None, (number, name)


def careless(path: Path) -> None:
    content = json.loads(path.read_bytes())
    if content["a"] != 1:
        raise BadRecordError("a is\nnot 1")


def writer(path: Path) -> None:
    path.with_name("other").write_text("x")


def refusing(path: Path) -> None:
    raise PulsarMlError("x" * 2_000)


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (careless, "Error"),
        (writer, "files changed"),
        (refusing, "2000 characters"),
        (lambda path: path.write_text("x"), "the input changed"),
    ],
)
def test_a_parser_that_does_not_survive_is_found(read: object, problem: str) -> None:
    parser = Parser(text_file("a.json", lambda: '{"a": 1}'), read)  # type: ignore[arg-type]
    found = [reason for _, reason in mutated.problems(range(40), {"careless": parser})]
    assert any(problem in reason for reason in found), found


def test_memory_is_that_of_the_case_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutated, "MOST_MEMORY", 64 << 20)

    def hungry(path: Path) -> None:
        bytearray(b"x") * (128 << 20)

    def modest(path: Path) -> None:
        bytearray(b"x") * (1 << 20)

    hungry(Path())  # what the process had before is no case's
    file = text_file("a.json", lambda: "{}")
    for read, number in ((modest, 0), (hungry, 2)):
        found = [*mutated.problems(range(2), {"memory": Parser(file, read)})]
        assert [reason for _, reason in found] == ["memory: more than 64 MiB of memory"] * number


def test_a_case_depends_on_its_number_alone(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        folder.mkdir()
    files = [mutated.good_files(folder) for folder in (first, second)]
    texts = [name for name in mutated.turns(files[0]) if not PARSERS[name].binary]
    numbers = [mutated.turns(files[0]).index(name) for name in texts]
    cases = [[mutated.case(good, number) for number in numbers] for good in files]
    assert cases[0] == cases[1]


def test_the_command_counts(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["1", "--first", "17", "--write", str(tmp_path / "case")])
    assert done.exit_code == 0 and "case 17, for the parser of" in done.output
    assert (tmp_path / "case").exists()

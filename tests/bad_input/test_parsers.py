"""Parsers get damaged, cut, hostile and missing files: they read them, or refuse in one sentence.

A parser changes nothing, does not wait, and uses bounded memory.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.errors import PulsarMlError
from tests import ROOT
from tests.bad_input.damage import (
    MANY,
    NO_FILES,
    damaged,
    digest,
    forbid_pickle,
    make_no_file,
    other_values,
)
from tests.bad_input.parsers import PARSERS, Parser, run_of

FEW = settings(parent=MANY, max_examples=30)
VERSIONED = [name for name, parser in PARSERS.items() if parser.version]
TEXTS = [name for name, parser in PARSERS.items() if not parser.binary]


@pytest.fixture(autouse=True)
def no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_pickle(monkeypatch)


def survives(parser: Parser, path: Path) -> None:
    before = digest(path.parent)
    try:
        parser.read(path)
    except PulsarMlError as error:
        answer = str(error)
        assert answer.strip()
        assert parser.lines or "\n" not in answer.strip(), answer[:1_000]
        assert all(len(line) < 1_000 for line in answer.splitlines()), answer[:2_000]
    else:
        if parser.writes:
            return
    assert digest(path.parent) == before


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each parser, in a folder of its own."""
    return {name: parser.make(tmp_path_factory.mktemp("right")) for name, parser in PARSERS.items()}


def copied(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, with the run that it belongs to."""
    root = run_of(path).parent if "run" in path.parts else path.parent
    copy = tmp_path_factory.mktemp("wrong") / "copy"
    shutil.copytree(root, copy)
    return copy / path.relative_to(root)


@pytest.mark.parametrize("name", PARSERS)
def test_what_is_right_is_read_and_stays(name: str, right: dict[str, Path]) -> None:
    before = right[name].read_bytes()
    PARSERS[name].read(right[name])
    assert right[name].read_bytes() == before


@pytest.mark.parametrize("name", PARSERS)
@FEW
@given(data=st.data())
def test_damaged(
    name: str, data: st.DataObject, right: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = copied(right[name], tmp_path_factory)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    survives(PARSERS[name], path)
    shutil.rmtree(path.parent)


@pytest.mark.parametrize(
    "name", [name for name in TEXTS if "json" in name or PARSERS[name].version]
)
@FEW
@given(data=st.data())
def test_other_values(
    name: str, data: st.DataObject, right: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = copied(right[name], tmp_path_factory)
    if path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        place = data.draw(st.integers(0, len(lines) - 1))
        lines[place] = data.draw(other_values(lines[place]))
        path.write_text("\n".join(lines))
    else:
        path.write_text(data.draw(other_values(path.read_text())))
    survives(PARSERS[name], path)
    shutil.rmtree(path.parent)


TEXT = {
    "nothing": b"",
    "a zero byte": b"\0",
    "bytes that are no text": b"\xff\xfe\x80",
    "a mark of byte order": "\ufeff{}".encode(),
    "half of a character": b'{"a": "\\ud800"}',
    "brackets without end": b"[" * 200_000,
    "braces without end": b'{"a":' * 100_000,
    "a table in a table": b"a = " + b"{a = " * 5_000,
    "a long number": b"1" * 20_000,
    "a large number": b"[1e999999999]",
    "a long line": b"a," * 20_000,
    "a quote without end": b'"' + b"a" * 500_000,
    "lines of nothing": b"\n" * 20_000,
    "null": b"null",
    "a list": b"[1, 2]",
    "a pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00cos\nsystem\n",
}


@pytest.mark.parametrize("content", TEXT)
@pytest.mark.parametrize("name", PARSERS)
def test_something_else(
    name: str, content: str, right: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = copied(right[name], tmp_path_factory)
    path.write_bytes(TEXT[content])
    survives(PARSERS[name], path)


@pytest.mark.parametrize("instead", ["nothing", *NO_FILES, "dangling", "secret"])
@pytest.mark.parametrize("name", [name for name, parser in PARSERS.items() if parser.file])
def test_no_plain_file(
    name: str, instead: str, right: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = copied(right[name], tmp_path_factory)
    path.unlink()
    make_no_file(instead, path)
    match instead:
        case "dangling":
            path.symlink_to(path.with_name("none"))
        case "secret":
            path.write_bytes(b"x")
            path.chmod(0)
    survives(PARSERS[name], path)


# The sources that read something, and the parser of the list; or why no parser is needed.
READS = {
    "pulsar_ml/campaign/store/compaction.py": "its own note; see tests/campaign/store/test_compaction.py",
    "pulsar_ml/harness/budgets/changed.py": "its own digests; see tests/budgets/test_changed.py",
    "pulsar_ml/campaign/plan/exhaustive.py": "trials of a search, resumed",
    "pulsar_ml/campaign/boot.py": "the search path that its own parent put on its command line",
    "pulsar_ml/campaign/trial/isolation.py": "rows of its own child, through a pipe",
    "pulsar_ml/campaign/trial/record.py": "replay record",
    "pulsar_ml/campaign/run/resume.py": "run.json, resumed",
    "pulsar_ml/campaign/plan/corpus.py": "trials, reported",
    "pulsar_ml/campaign/plan/rounds.py": "round, reported",
    "pulsar_ml/campaign/store/read_run.py": "run.json, reported",
    "pulsar_ml/campaign/shrink/shrinking.py": "what its own child said, through a pipe",
    "pulsar_ml/campaign/shrink/shrunk.py": "smaller failure, reported",
    "pulsar_ml/campaign/store/staging.py": "files that its own tasks made",
    "pulsar_ml/campaign/store/store.py": "trials, resumed",
    "pulsar_ml/campaign/trial/supervisor.py": "rows of its own child, from memory",
    "pulsar_ml/campaign/store/witnesses.py": "violations, resumed",
    "pulsar_ml/campaign/plan/plan.py": "run.json, resumed",
    "pulsar_ml/report/findings.py": "kill-table.json of a run",
    "pulsar_ml/versioned_json.py": "the helper of those above",
    "pulsar_ml/config/properties.py": "broker.conf",
    "pulsar_ml/harness/building/build.py": "an order to its own child",
    "pulsar_ml/harness/causes/hints_file.py": "hints",
    "pulsar_ml/harness/functions/flags.py": "compile_commands.json, of the user's own build",
    "pulsar_ml/harness/building/project.py": "an order to its own child",
    "pulsar_ml/harness/building/pyproject.py": "pyproject.toml, of the user's own project",
    "pulsar_ml/harness/subjects/recipe.py": "a text in a failure, which is read with --trust",
    "pulsar_ml/harness/functions/library.py": "its own list of files; damaged, it builds again",
    "pulsar_ml/harness/building/unseen.py": "its own cache; a damaged one is ignored",
    "pulsar_ml/harness/pythreads/stuck.py": "where its own child stands, through shared memory",
    "pulsar_ml/harness/search/child.py": "what the kernel says of this process",
    "pulsar_ml/harness/search/frames.py": "messages of its own child, through a pipe",
    "pulsar_ml/harness/search/failure.py": "failure",
    "pulsar_ml/harness/histories/files.py": "history.jsonl",
    "pulsar_ml/harness/histories/jepsen.py": "events, which tests/linearize/test_files.py damages",
    "pulsar_ml/harness/histories/tables.py": "tables, which tests/linearize/test_files.py damages",
    "pulsar_ml/harness/subjects/program.py": "failure",
    "pulsar_ml/managed_ledger/cursors/cursor_metadata.py": "metadata of a cursor",
    "pulsar_ml/managed_ledger/cursors/cursor_store.py": "metadata of a cursor",
    "pulsar_ml/managed_ledger/storage/disk.py": "ledgers of a storage",
    "pulsar_ml/harness/testing/known.py": "known.toml",
    "pulsar_ml/report/kill_cells.py": "kill_table.csv, reported",
    "pulsar_ml/simulate/workload.py": "workload",
    "pulsar_ml/distributed/machines/cluster.py": "cluster.json",
    "pulsar_ml/sweep/forever.py": "an order to its own child",
    "pulsar_ml/distributed/groups.py": "files that its own tasks made",
    "pulsar_ml/distributed/jobs.py": "rows of its own tasks, from memory",
    "pulsar_ml/distributed/machines/environment.py": "the answer of its own child",
    "pulsar_ml/distributed/grid.py": "results of its own tasks",
    "pulsar_ml/campaign/local/exploring.py": "a failure that this process made",
    "pulsar_ml/campaign/local/record_kind.py": "failure",
    "pulsar_ml/cli/understand/engine_replay.py": "a failure that this process made",
    "pulsar_ml/harness/building/build_call.py": "build call",
    "pulsar_ml/cli/find/linearize.py": "the value of an option of the command line",
    "pulsar_ml/suites/invariants.py": "a file of the project",
    "stress/mutants/table/sanitized_trials.py": "lines of its own child",
    "stress/mutants/csv_rows.py": "kill_table.csv",
    "stress/mutants/automatic/results.py": "reasons in a file of the project",
    "stress/mutants/faults/results.py": "reasons in a file of the project",
    "pulsar_ml/cli/find/hunt.py": "a failure that this process made",
}
READING = re.compile(
    r"""\b(json\.loads?|(?<!def\ )(?:read|check)_object|check_keys
    |tomllib\.loads?|csv\.(DictReader|reader)|pq\.(read_\w+|ParquetFile)|pa\.ipc\.open\w+
    |ipc\.open_\w+|edn_format\.loads\w*|b85decode|urlsafe_b64decode|b64decode|decompress(obj)?|unpack(_from)?
    |sqlite3\.connect|configparser|yaml\.\w*load\w*|ElementTree|np\.(load|fromfile|genfromtxt|loadtxt)
    |ast\.literal_eval)\(|javaproperties\.parse\(""",
    re.VERBOSE,
)


def test_each_place_that_reads_something_is_in_the_list() -> None:
    reading = set()
    for package in ("pulsar_ml", "stress", "spark"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if READING.search(path.read_text()):
                reading.add(path.relative_to(ROOT).as_posix())
    assert reading == set(READS), reading ^ set(READS)


def test_the_parsers_that_the_list_names_are_tried() -> None:
    named = {reader for reader in READS.values() if reader in PARSERS}
    assert named >= {"replay record", "failure", "workload", "cluster.json", "kill_table.csv"}
    reasons = [reader for reader in READS.values() if reader not in PARSERS]
    assert all(" " in reason for reason in reasons)


# Pickles whose bytes come from the same expression, or from the process at its own pipe.
PICKLES = {
    "pulsar_ml/harness/pythreads/answers.py": "pickle.loads(state)",  # of a model, of this process
    "pulsar_ml/harness/search/frames.py": "pickle.loads(data)",  # behind the child's key
    "pulsar_ml/harness/search/child.py": "pickle.loads(pickle.dumps(",
    "pulsar_ml/harness/models/copies.pyx": "pickle.loads(pickle.dumps(",
}
LOADING = re.compile(
    r"\b(pickle|cPickle|dill|cloudpickle|joblib|marshal|torch)\s*\.\s*loads?\b|\bUnpickler\b|allow_pickle"
    r"|\bread_pickle\b|\bimport (shelve|dill|joblib|marshal)\b"
    r"|\b(yaml\.(unsafe_|full_)?load)\(|(?<![.\w])eval\("
)


def test_no_pickle_is_loaded_that_this_process_did_not_make() -> None:
    found = {}
    for package in ("pulsar_ml", "stress", "spark", "benchmarks"):
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxi"):
                text = path.read_text()
                if places := [text[match.start() :] for match in LOADING.finditer(text)]:
                    found[path.relative_to(ROOT).as_posix()] = places
    assert set(found) == set(PICKLES)
    for name, places in found.items():
        assert all(place.startswith(PICKLES[name]) for place in places), name


@pytest.mark.parametrize(
    "text",
    [
        "pickle.load(file)",
        "np.load(path, allow_pickle=True)",
        "x = eval(text)",
        "Unpickler(file)",
        "marshal.loads(b)",
    ],
)
def test_the_search_for_pickles_finds_them(text: str) -> None:
    assert LOADING.search(text)


@pytest.mark.parametrize("name", VERSIONED)
@pytest.mark.parametrize("version", [99, 2**70, -1, "1", None, 1.5, [1]])
def test_a_newer_version(
    name: str, version: object, right: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = copied(right[name], tmp_path_factory)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, PARSERS[name].version: version}))
    before = digest(path.parent)
    with pytest.raises(PulsarMlError, match="version|damaged"):
        PARSERS[name].read(path)
    assert digest(path.parent) == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seconds = inf", "seconds: inf should be a number of 0 or more, at most"),
        ("seconds = nan", "seconds: nan should be"),
        ("seconds = true", "seconds: True should be"),
        ("seed = 1" + "0" * 30, "seed: 10*\\.{0,3} ?should be a whole number"),
        ("storage_read_millis = -1", "-1 should be milliseconds, .* from 0 to 3,600,000"),
        ("[[topics]]\ncount = 900000000", "900,000,000 topics, subscriptions and consumers"),
        (
            "[[topics]]\n[[topics.subscriptions]]\ncount = 1000000",
            "topics, subscriptions and consumers",
        ),
        ("[[topics]]\nentry_bytes = [0, inf]", "should be a number or"),
        (
            "[[topics]]\ncount = 10000\nentries_per_second = 50000000",
            "about 10,000,000,000,000 entries, written and in backlogs, are too many; use 100,000,000",
        ),
        ("[[topics]]\nbacklog = 1000000000", "about 1,000,002,000 entries"),
        (
            "[[topics]]\nbacklog = 10000000\n[[topics.subscriptions]]\ncount = 1000",
            "deliveries of entries to subscriptions are too many",
        ),
        (
            "[[topics]]\n[[topics.subscriptions]]\nconnected_seconds = 1e-9",
            "about 20,000,000,000 connections of consumers",
        ),
        ("[[topics]]\n[[topics.subscriptions]]\nconnected_seconds = nan", "should be a number or"),
    ],
)
def test_numbers_of_a_workload_without_measure(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "workload.toml"
    path.write_text(line + ("" if "topics" in line else "\n[[topics]]\n"))
    with pytest.raises(PulsarMlError, match=message):
        PARSERS["workload"].read(path)

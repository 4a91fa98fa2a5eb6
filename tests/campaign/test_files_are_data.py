"""A run's directory made by somebody else: no command writes or deletes outside of it."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.store.schema import ROW, split
from pulsar_ml.campaign.store.store import RunStore, record_path
from pulsar_ml.campaign.trial.trial import PRODUCT, TrialOptions
from pulsar_ml.cli import main as pulsar_ml
from pulsar_ml.errors import UsageError
from pulsar_ml.terminal import trust
from pulsar_ml.terminal.command_line import DEFAULT_SUITES
from tests.bad_input.damage import digest
from tests.report.kit import BUILD_ID, failure_of, of_failure, row, violation, write_run


def a_run(directory: Path, found: dict[str, Any] | None = None, suite: str = "made_up") -> Path:
    facts = {
        "build_id": BUILD_ID,
        "plan": Plan((suite,), 0, 2, 1, TrialOptions(engine="controlled")).to_json(),
        "runner": {},
    }
    found = found or violation("I1", "the count is 3")
    rows = [row(0, suite=suite, found=[found]), row(1, suite=suite)]
    return write_run(directory, rows, **facts)


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "..", "a/b", "", "x\0y", "x" * 65, "a\n"])
def test_a_signature_in_a_table_is_no_path(tmp_path: Path, name: str) -> None:
    record = violation("I1", "the count is 3")
    with pytest.raises(UsageError, match="is no signature; those of a run have"):
        a_run(tmp_path / "made" / "run", {**record, "signature": name})
    assert [path for path in tmp_path.rglob("*.json") if "records" not in path.parts] == []
    shutil.rmtree(tmp_path / "made")
    # As above, by a program that does not look.
    run = a_run(tmp_path / "run", {**record, "signature": "0123"})
    rows = [row(0, found=[{**record, "signature": name}]), row(1)]
    (run / "trials" / "wave-00000.parquet").unlink()
    write_tables(run, rows)
    before = digest(tmp_path)
    with pytest.raises(UsageError, match="is no signature") as raised:
        past_of(run)
    assert "\n" not in str(raised.value)
    assert digest(tmp_path) == before


def write_tables(run: Path, rows: list[dict[str, Any]]) -> None:
    store = RunStore.reopen(run)
    store.write_wave(0, *split(pa.Table.from_pylist(rows, schema=ROW)))
    store.close()


def test_a_path_of_a_record_lies_in_the_run() -> None:
    assert record_path(Path("run"), "0a-Z_9") == Path("run/records/0a-Z_9.json")


@pytest.mark.parametrize(
    "name",
    [
        "trials",
        "violations",
        "chunks",
        "records",
        "rounds",
        "shrunk",
        ".staging",
        ".compacting",
        "run.json",
        "spark.log",
        "executors",
        "report.html",
    ],
)
def test_a_link_in_a_run_is_not_followed(tmp_path: Path, name: str) -> None:
    run = a_run(tmp_path / "run")
    elsewhere = tmp_path / "elsewhere"
    if (run / name).exists():
        (run / name).rename(elsewhere)
    else:
        elsewhere.mkdir()
    if elsewhere.is_dir():
        (elsewhere / "wave-00007.parquet").write_bytes(b"mine")
        (elsewhere / ".wave-00007.parquet.x").write_bytes(b"mine")
    (run / name).symlink_to(elsewhere)
    before = digest(tmp_path)
    with pytest.raises(UsageError, match=f"{name} is a symbolic link"):
        past_of(run).store.tidy()
    assert digest(tmp_path) == before


def test_a_run_behind_a_link_is_the_users_choice(tmp_path: Path) -> None:
    a_run(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    past = past_of(tmp_path / "link")
    past.store.tidy()
    past.store.close()


@pytest.mark.parametrize("name", ["run_id", "build_id"])
@pytest.mark.parametrize("value", ["\ud800", "x" * 10_000, "a\x1b[2J"])
def test_an_id_that_is_none(tmp_path: Path, name: str, value: str) -> None:
    run = a_run(tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, name: value}))
    with pytest.raises(UsageError, match=f"damaged: its {name} is") as raised:
        past_of(run)
    assert len(str(raised.value)) < 300


EVIL = """
from pathlib import Path
Path("was-imported").touch()
SUITES = {}
SUBJECTS = {}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with a module that shows that it was imported."""
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def of_threads() -> str:
    return json.dumps({**json.loads(violation("I1", "it is 3")["replay"]), "suite": "refcount",
                       "module": "evil"})  # fmt: skip


def of_engine() -> str:
    return dataclasses.replace(failure_of("race_met"), module="evil").to_json()


@pytest.mark.parametrize(
    ("command", "record"),
    [("replay", of_threads), ("replay", of_engine), ("trace", of_engine), ("shrink", of_engine)],
)
def test_a_record_imports_nothing_from_elsewhere(
    place: Path, command: str, record: Callable[[], str]
) -> None:
    path = place / "record.json"
    path.write_text(record())
    before = digest(place)
    done = CliRunner().invoke(pulsar_ml, [command, str(path)])
    assert done.exit_code == 2, done.output
    assert "names --module 'evil', which is not of this installation" in done.output
    assert "add --trust" in done.output and "give --module yourself" in done.output
    assert digest(place) == before
    for words in (["--trust"], ["--module", "evil"]):
        sys.modules.pop("evil", None)
        (place / "was-imported").unlink(missing_ok=True)
        CliRunner().invoke(pulsar_ml, [command, str(path), *words])
        assert (place / "was-imported").exists(), "it has to be confirmed, and then it counts"


def test_a_run_imports_nothing_from_elsewhere_when_its_failures_are_shrunk(place: Path) -> None:
    found = of_failure(dataclasses.replace(failure_of("race_met"), module="evil"))
    run = a_run(place / "run", found, "refcount")
    words = ["shrink", str(run), "--runner", "pool", "--workers", "1"]
    done = CliRunner().invoke(pulsar_ml, words)
    assert "not of this installation" in done.output and not (place / "was-imported").exists()
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "runner": {"registry": "evil"}}))
    done = CliRunner().invoke(pulsar_ml, words)
    assert done.exit_code == 2 and "run.json names --suites 'evil'" in done.output
    assert not (place / "was-imported").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("suites", "evil"),
        ("module", "evil"),
        ("module", "/tmp/evil.so"),
        ("module", "pulsar_ml/../evil.so"),
        ("conf", ["spark.driver.extraJavaOptions=-javaagent:/tmp/evil.jar"]),
        ("environment", "evil.tar.gz"),
        ("master", "spark://elsewhere:7077"),
    ],
)
def test_a_run_that_goes_on_chooses_no_code(place: Path, name: str, value: object) -> None:
    run = a_run(place / "run")
    facts = json.loads((run / "run.json").read_text())
    command = {"suite": ["refcount"], "seeds": 2, "runner": "inline", name: value}
    (run / "run.json").write_text(json.dumps({**facts, "command": command}))
    before = digest(place)
    done = CliRunner().invoke(pulsar_ml, ["sweep", "--resume", str(run)])
    assert done.exit_code == 2, done.output
    assert f"run.json names --{name}" in done.output and "add --trust" in done.output
    assert digest(place) == before
    done = CliRunner().invoke(pulsar_ml, ["sweep", "--resume", str(run), "--trust"])
    assert "add --trust" not in done.output


@pytest.mark.parametrize("name", ["progress_file", "out"])
def test_a_run_that_goes_on_chooses_no_file(place: Path, name: str) -> None:
    run = a_run(place / "run")
    facts = json.loads((run / "run.json").read_text())
    command = {"suite": ["refcount"], "runner": "inline", name: str(place / "written")}
    (run / "run.json").write_text(json.dumps({**facts, "command": command}))
    CliRunner().invoke(pulsar_ml, ["sweep", "--resume", str(run)])
    assert not (place / "written").exists()


@pytest.mark.parametrize(
    ("module", "own"),
    [
        (PRODUCT, True),
        (DEFAULT_SUITES, True),
        ("", True),
        (str(trust.PACKAGE / "mine.so"), True),
        ("pulsar_ml_evil", False),
        ("evil.pulsar_ml.x", False),
        (str(trust.PACKAGE / "../evil.so"), False),
        ("./evil.so", False),
    ],
)
def test_what_is_of_this_installation(module: str, own: bool) -> None:
    assert trust.is_installed(module) is own
    assert trust.trust_words(module) == (() if own else ("--trust",))

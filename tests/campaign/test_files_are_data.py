"""A run's directory made by somebody else: no command writes or deletes outside of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.store.store import RunStore, record_path
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import UsageError
from tests.bad_input.damage import digest
from tests.report.kit import BUILD_ID, row, violation, write_run


def a_run(directory: Path, found: dict[str, Any] | None = None) -> Path:
    facts = {
        "build_id": BUILD_ID,
        "plan": Plan(("made_up",), 0, 2, 1, TrialOptions(engine="controlled")).to_json(),
        "runner": {},
    }
    rows = [row(0, found=[found or violation("I1", "the count is 3")]), row(1)]
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
    import pyarrow as pa

    from pulsar_ml.campaign.store.schema import ROW, split

    store = RunStore.reopen(run)
    store.write_wave(0, *split(pa.Table.from_pylist(rows, schema=ROW)))
    store.close()


def test_a_path_of_a_record_lies_in_the_run() -> None:
    assert record_path(Path("run"), "0a-Z_9") == Path("run/records/0a-Z_9.json")


@pytest.mark.parametrize(
    "name",
    ["trials", "violations", "chunks", "records", "rounds", "shrunk", ".staging", ".compacting"]
    + ["run.json", "spark.log", "executors", "report.html"],
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

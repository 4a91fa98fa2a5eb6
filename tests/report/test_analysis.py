"""The analysis page: its columns match the schema, and its queries return right answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.store.columns import SCHEMA_VERSION
from pulsar_ml.campaign.store.schema import (
    CHUNKS,
    COUNTED,
    METADATA,
    SUMMED,
    TRIALS,
    VIOLATIONS,
)
from pulsar_ml.cli import main
from tests import ROOT
from tests.report.kit import row, violation, write_run

PAGE = (ROOT / "docs" / "analysis.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


def rows(first: int) -> list[dict[str, Any]]:
    violating = [
        row(
            seed,
            found=[violation("I1", f"the count is {seed}", seed=seed)] if seed % 4 == 0 else [],
        )
        for seed in range(first, first + 20)
    ]
    return violating + [
        row(seed, suite="calm", exhausted="completely") for seed in range(first, first + 10)
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        write_run(folder / name, rows(first), run_id=name)
        for name, first in (("one", 0), ("two", 20))
    ]


@pytest.fixture(scope="module")
def collected(runs: list[Path]) -> Path:
    into = runs[0].parent / "all"
    for _ in range(2):  # the second run replaces the results of the first one
        done = CliRunner().invoke(main, ["collect", *map(str, runs), "--into", str(into)])
        assert done.exit_code == 0, done.output
        assert done.stdout == f"2 runs in {into}\n"
    return into


def ask(trials: str, violations: str, query: str) -> list[dict[str, Any]]:
    with duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    ) as session:
        session.execute("SET TimeZone = 'UTC'")
        session.execute(f"CREATE VIEW trials AS SELECT * FROM {trials}")
        session.execute(f"CREATE VIEW violations AS SELECT * FROM {violations}")
        found = session.execute(query)
        names = [column[0] for column in found.description]
        return [dict(zip(names, line, strict=True)) for line in found.fetchall()]


def of_run(run: Path, number: int) -> list[dict[str, Any]]:
    return ask(f"'{run}/trials/*.parquet'", f"'{run}/violations/*.parquet'", QUERIES[number - 1])


def of_all(collected: Path, number: int) -> list[dict[str, Any]]:
    tables = [
        f"read_parquet('{collected}/{name}/*/*/*.parquet', hive_partitioning = true)"
        for name in ("trials", "violations")
    ]
    return ask(tables[0], tables[1], QUERIES[number - 1])


def test_the_page_lists_the_columns_of_the_schema() -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([\w\[\], =]+) \| (\w+) \|", PAGE, re.MULTILINE)
    expected = []
    for name in dict.fromkeys([*TRIALS.names, *VIOLATIONS.names]):
        schema = TRIALS if name in TRIALS.names else VIOLATIONS
        both = name in TRIALS.names and name in VIOLATIONS.names
        where = "both" if both else "trials" if schema is TRIALS else "violations"
        expected.append((name, str(schema.field(name).type), where))
    assert listed == expected
    assert f"Schema version {SCHEMA_VERSION}," in PAGE


def test_the_page_lists_the_columns_of_the_ledger() -> None:
    rows = PAGE.split("| column of `chunks` and its type |")[1].split("\n\n")[0].splitlines()[2:]
    listed = [
        pair for line in rows for pair in re.findall(r"`(\w+)` ([^`|]+?)(?:,? \||, (?=`))", line)
    ]
    assert sorted(listed) == sorted((field.name, str(field.type)) for field in CHUNKS)


def test_sums_over_the_ledger_are_sums_over_the_trials(runs: list[Path]) -> None:
    trials, violations = f"'{runs[0]}/trials/*.parquet'", f"'{runs[0]}/violations/*.parquet'"
    names = [name for name in SUMMED if name not in COUNTED]
    sums = ", ".join(f'sum("{name}") AS "{name}"' for name in names)
    answer = ask(
        f"'{runs[0]}/chunks/*.parquet'", violations, f"SELECT sum(trials) AS n, {sums} FROM trials"
    )
    assert answer == ask(trials, violations, f"SELECT count(*) AS n, {sums} FROM trials")
    query = "SELECT sum(violations) AS n, sum(violation) AS v FROM trials"
    assert ask(f"'{runs[0]}/chunks/*.parquet'", violations, query) == [{"n": 5, "v": 5}]


def test_there_are_ten_questions_with_a_query_each() -> None:
    assert len(QUERIES) == 10
    assert re.findall(r"^\*\*(\d+)\. ", PAGE, re.MULTILINE) == [
        str(number) for number in range(1, 11)
    ]


@pytest.mark.parametrize("number", range(1, 11))
def test_every_query_has_an_answer(runs: list[Path], collected: Path, number: int) -> None:
    assert of_run(runs[0], number)
    assert of_all(collected, number)


def test_the_answers_are_right(runs: list[Path]) -> None:
    run = runs[0]
    assert of_run(run, 1) == [
        {"suite": "calm", "trials": 10, "violating": 0, "idle": 0, "executions": 1000},
        {"suite": "made_up", "trials": 20, "violating": 5, "idle": 0, "executions": 2000},
    ]
    ((kind),) = of_run(run, 2)
    assert (kind["suite"], kind["invariant"], kind["violations"], kind["seed"]) == (
        "made_up",
        "I1",
        5,
        0,
    )
    ((record),) = of_run(run, 3)
    assert record["message"] == "the count is 0" and '"seed": 0' in record["replay"]
    assert of_run(run, 4) == [{"suite": "calm", "risk_below": pytest.approx(0.003)}]
    new = {
        line["tenth"]: float(line["classes_per_1000"])
        for line in of_run(run, 5)
        if line["suite"] == "made_up"
    }
    assert new == {tenth: pytest.approx(10 * (40 - 2 * tenth + 1.5)) for tenth in range(1, 11)}
    ((found),) = of_run(run, 6)
    assert found["violating"] == 5 and float(found["per_hour"]) == pytest.approx(3.6e9 * 5 / 30_000)
    assert sum(line["trials"] for line in of_run(run, 7)) == 30
    assert len(of_run(run, 8)) == 10
    assert {(line["suite"], line["exhausted"]): line["programs"] for line in of_run(run, 9)} == {
        ("calm", "completely"): 10, ("made_up", ""): 20,
    }  # fmt: skip
    ((host),) = of_run(run, 10)
    assert host["host"] == "here"
    assert float(host["share"]) == pytest.approx(1 / 6)


def test_a_collection_is_partitioned_by_run_and_suite(collected: Path) -> None:
    files = sorted(
        path.relative_to(collected).as_posix() for path in collected.rglob("*") if path.is_file()
    )
    assert files == sorted(
        f"{table}/run_id={run}/suite={suite}/part-0.parquet"
        for run in ("one", "two")
        for table, suites in (("trials", ("calm", "made_up")), ("violations", ("made_up",)))
        for suite in suites
    )
    (key,) = METADATA
    assert pq.read_schema(collected / files[0]).metadata[key] == str(SCHEMA_VERSION).encode()
    assert sum(line["trials"] for line in of_all(collected, 1)) == 60


def test_pandas_reads_runs_and_collections(runs: list[Path], collected: Path) -> None:
    assert len(pandas.read_parquet(runs[0] / "trials")) == 30
    both = pandas.read_parquet(collected / "trials")
    assert len(both) == 60
    assert set(both["run_id"]) == {"one", "two"} and set(both["suite"]) == {"calm", "made_up"}


@pytest.mark.parametrize("run_id", ["", "..", "../x", "a/b", ".hidden", "x" * 200])
def test_a_run_id_that_is_no_name_is_refused(tmp_path: Path, run_id: str) -> None:
    run = write_run(tmp_path / "run", rows(0), run_id=run_id)
    done = CliRunner().invoke(main, ["collect", str(run), "--into", str(tmp_path / "all")])
    assert done.exit_code == 2
    assert "cannot be the name of a directory" in done.output
    assert not (tmp_path / "all").exists()


def test_a_damaged_run_leaves_the_collection_as_it_was(collected: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in collected.rglob("*") if path.is_file()}
    run = write_run(tmp_path / "run", rows(0), run_id="one")
    (run / "trials" / "wave-00000.parquet").write_bytes(b"PAR1")
    done = CliRunner().invoke(main, ["collect", str(run), "--into", str(collected)])
    assert done.exit_code == 2
    assert {path: path.read_bytes() for path in collected.rglob("*") if path.is_file()} == before

"""The queries of docs/analysis.md with Spark SQL, on a run and on a collection of runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.campaign.store.collection import collect
from pulsar_ml.campaign.store.read_run import open_run
from tests import ROOT
from tests.report.kit import write_run
from tests.report.test_analysis import QUERIES, rows

QUESTIONS = (1, 2, 5, 9)
SCRIPT = """
import json, sys
from pathlib import Path
from pulsar_ml.distributed.session import open_session, settings

folder, queries = Path(sys.argv[1]), json.loads(sys.argv[2])
scratch = folder / "scratch"
scratch.mkdir()
session = open_session(
    settings("local[1]", cpus=1, scratch=scratch, site=scratch), {"spark.sql.shuffle.partitions": "1"},
    scratch=scratch, log=folder / "log",
)
answers = []
for directory in ("run", "all"):
    for name in ("trials", "violations"):
        session.read.parquet(str(folder / directory / name)).createOrReplaceTempView(name)
    for query in queries:
        lines = [line.asDict() for line in session.sql(query).collect()]
        answers.append([{name: str(value) for name, value in line.items()} for line in lines])
session.stop()
print(json.dumps(answers))
"""


@pytest.mark.xdist_group("spark")
def test_spark_sql_answers_like_duckdb(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", rows(0), run_id="one")
    collect(open_run(run), tmp_path / "all")
    queries = json.dumps([QUERIES[number - 1] for number in QUESTIONS])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), queries],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    of_run, of_all = answers[: len(QUESTIONS)], answers[len(QUESTIONS) :]
    assert of_run == of_all, "the collection holds the same rows"
    totals, kinds, tenths, bounds = of_run
    assert [(line["suite"], line["trials"], line["violating"]) for line in totals] == [
        ("calm", "10", "0"), ("made_up", "20", "5"),
    ]  # fmt: skip
    assert [(line["violations"], line["seed"]) for line in kinds] == [("5", "0")]
    assert len(tenths) == 20
    assert {line["exhausted"] for line in bounds} == {"", "completely"}

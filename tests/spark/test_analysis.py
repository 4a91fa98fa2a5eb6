"""The queries of docs/analysis.md with Spark SQL, on a run and on a collection of runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from pulsar_ml.campaign.store.collection import collect
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.distributed.driver import spark_session
from tests.report.kit import write_run
from tests.report.test_analysis import QUERIES, rows
from tests.spark.session.one_jvm import OneJvm

QUESTIONS = (1, 2, 5, 9)


def answers_to(queries: Sequence[str], folder: Path) -> list[list[dict[str, str]]]:
    answers = []
    with ExitStack() as stack:
        session = spark_session(stack, "local[1]", {"spark.sql.shuffle.partitions": "1"})
        for directory in ("run", "all"):
            for name in ("trials", "violations"):
                session.read.parquet(str(folder / directory / name)).createOrReplaceTempView(name)
            for query in queries:
                lines = [line.asDict() for line in session.sql(query).collect()]
                answers.append([{name: str(line[name]) for name in line} for line in lines])
    return answers


@pytest.mark.xdist_group("spark")
def test_spark_sql_answers_like_duckdb(tmp_path: Path, spark_jvm: OneJvm) -> None:
    run = write_run(tmp_path / "run", rows(0), run_id="one")
    collect(open_run(run), tmp_path / "all")
    with spark_jvm.serving(tmp_path):
        answers = answers_to([QUERIES[number - 1] for number in QUESTIONS], tmp_path)
    of_run, of_all = answers[: len(QUESTIONS)], answers[len(QUESTIONS) :]
    assert of_run == of_all, "the collection holds the same rows"
    totals, kinds, tenths, bounds = of_run
    assert [(line["suite"], line["trials"], line["violating"]) for line in totals] == [
        ("calm", "10", "0"), ("made_up", "20", "5"),
    ]  # fmt: skip
    assert [(line["violations"], line["seed"]) for line in kinds] == [("5", "0")]
    assert len(tenths) == 20
    assert {line["exhausted"] for line in bounds} == {"", "completely"}

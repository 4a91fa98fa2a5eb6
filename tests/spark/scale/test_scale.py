"""The model of costs: its arithmetic, the command of its page, complete trivial sweeps."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.schema import ROW
from pulsar_ml.campaign.trial.chunk import run_chunk
from pulsar_ml.cli.distribute.scale import (
    TRIALS,
    command,
    costs_table,
    predicted_table,
    seconds,
    simulated_table,
)
from pulsar_ml.distributed.scale import costs
from pulsar_ml.distributed.scale.bench import JOB
from pulsar_ml.distributed.scale.costs import Costs, Load, predict, smallest_trial
from pulsar_ml.distributed.scale.trivial import SUITES, rows, trial
from tests import ROOT
from tests.spark.session.one_jvm import OneJvm

PAGE = (ROOT / "docs" / "scale.md").read_text()
FREE = Costs(
    job=0.0, task=0.0, chunk=0.0, row=0.0, schedule=0.0, driver_chunk=0.0, merge=0.0, row_bytes=5.0,
    chunk_bytes=100.0, memory=1e8, chunk_memory=1000.0,
)  # fmt: skip
DEAR = replace(
    FREE, job=0.5, task=0.02, chunk=0.002, row=1e-5, schedule=0.003, driver_chunk=1e-5, merge=2e-6
)
LOAD = Load(seeds=10**9, cores=1000, trial=1e-3, task=30.0, wave=300.0)


def test_what_costs_nothing_takes_the_time_of_its_trials_and_of_the_ends_of_its_waves() -> None:
    estimate = predict(FREE, LOAD)
    assert 1000 <= estimate.wall <= 1001 + estimate.waves * LOAD.task / 2
    assert estimate.efficiency == pytest.approx(1000 / estimate.wall)
    assert estimate.core_hours(1000) == pytest.approx(estimate.wall / 3.6)
    assert estimate.rows_bytes == 5e9 and estimate.driver == 0
    whole = predict(FREE, replace(LOAD, seeds=3_750_000))
    assert whole.wall == pytest.approx(3.75)
    assert (whole.waves, whole.tasks) == (1, 1000), "a chunk for each core"
    one = predict(FREE, replace(LOAD, seeds=1000, wave=1.0))
    assert one.wall == pytest.approx(1e-3)
    assert (one.waves, one.tasks) == (1, 1000), "a trial for each core"


@pytest.mark.parametrize("trial", TRIALS)
def test_every_cost_makes_it_longer_and_more_cores_do_not(trial: float) -> None:
    load = replace(LOAD, trial=trial)
    wall = predict(DEAR, load).wall
    assert wall > predict(FREE, load).wall
    for name in ("job", "task", "chunk", "row", "schedule", "driver_chunk", "merge"):
        assert predict(replace(DEAR, **{name: 0.0}), load).wall <= wall * 1.01, name
    assert predict(DEAR, replace(load, cores=10)).wall > wall


def test_a_driver_that_is_too_slow_is_the_limit() -> None:
    slow = replace(DEAR, schedule=1.0)
    estimate = predict(slow, LOAD)
    assert estimate.wall >= estimate.tasks and estimate.driver_load > 0.9
    assert estimate.driver >= estimate.tasks * slow.schedule
    assert predict(DEAR, LOAD).driver_load < 0.2


def test_the_drivers_memory_is_that_of_a_wave() -> None:
    sizes = [predict(DEAR, replace(LOAD, seeds=10**power)).memory for power in (9, 10, 11)]
    ids = [predict(DEAR, replace(LOAD, seeds=10**power)).chunks / 8 for power in (9, 10, 11)]
    assert sizes[1] - ids[1] == sizes[0] - ids[0] == sizes[2] - ids[2], (
        "but for a bit for each chunk"
    )


def test_the_smallest_trial_keeps_the_cores_busy() -> None:
    found = smallest_trial(DEAR, cores=1000, task=30.0, wave=300.0, efficiency=0.9)
    assert predict(DEAR, replace(LOAD, trial=found * 1.05)).efficiency >= 0.9
    assert predict(DEAR, replace(LOAD, trial=found / 2)).efficiency < 0.9


def test_the_model_looks_at_few_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    wave = costs._wave

    def counted(settings: Costs, load: Load, chunks: int, rows: int) -> costs._Wave:
        seen.append(chunks)
        return wave(settings, load, chunks, rows)

    monkeypatch.setattr(costs, "_wave", counted)
    for power in range(-6, 4):
        for job in (0.0, 1.0, 77.0):
            seen.clear()
            load = replace(LOAD, trial=10.0**power)
            estimate = predict(replace(DEAR, job=job), load)
            assert len(seen) <= costs.LOOKED_AT + 20 and estimate.chunks >= sum(seen)


def test_trivial_rows_are_rows() -> None:
    batch = rows(Chunk(3, "trivial", 9_990, 10_010), JOB)
    assert batch.schema.equals(ROW)
    pa.Table.from_batches([batch]).validate(full=True)
    assert batch["seed"].to_pylist() == list(range(9_990, 10_010))
    assert [len(found) for found in batch["violations"].to_pylist()] == [0] * 10 + [1] + [0] * 9
    assert [verdict for verdict in batch["verdict"].to_pylist() if verdict != "clean"] == [
        "violation"
    ]
    single = run_chunk(SUITES["trivial"], Chunk(3, "trivial", 1, 3), JOB, trial=trial)
    assert single is not None and single["verdict"].to_pylist() == ["clean", "clean"]


def test_times_are_told_with_their_unit() -> None:
    assert [seconds(number) for number in (30, 1.25, 0.02, 1e-3, 2.5e-6, 0)] == [
        "30 s", "1.25 s", "20 ms", "1 ms", "2.5 us", "0 ns",
    ]  # fmt: skip


def test_the_page_has_the_tables_of_the_command() -> None:
    estimates = [
        (replace(LOAD, trial=each), predict(DEAR, replace(LOAD, trial=each))) for each in TRIALS
    ]
    simulated = dict.fromkeys(("trials", "waves", "violations", "signatures"), 1)
    simulated |= dict.fromkeys(("predicted", "seconds", "python", "heap"), 1)
    tables = [costs_table(DEAR, DEAR), predicted_table(estimates), simulated_table([simulated])]
    rows_of_page = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines()
                    if line.startswith("|")]  # fmt: skip
    for table in tables:
        assert [str(column.header) for column in table.columns] in rows_of_page
    firsts = {row[0] for row in rows_of_page}
    assert {seconds(each) for each in TRIALS} <= firsts
    assert {str(cell).strip() for cell in tables[0].columns[0].cells} <= firsts
    assert re.search(r"pulsar-ml scale --simulate", PAGE)


@pytest.mark.xdist_group("spark")
def test_the_command_measures_and_simulates(tmp_path: Path, spark_jvm: OneJvm) -> None:
    options = [
        "--measure-rows",
        "2000",
        "--measure-tasks",
        "2",
        "--simulate",
        "30000",
        "--json",
    ]
    done = spark_jvm.run(command, tmp_path, *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (found,) = result["simulated"]
    assert [found["trials"], found["violations"]] == found["expected"] == [30_000, 3]
    assert found["signatures"] == 1 and found["waves"] >= 1
    assert (
        found["predicted"] > 0
        and found["seconds"] > 0
        and found["python"] > 0
        and found["heap"] > 0
    )
    assert all(cost >= 0 for cost in result["costs"].values())
    assert result["costs"]["row"] >= result["trivial"]["row"] and result["costs"]["row_bytes"] > 1
    assert [each["trial"] for each in result["predicted"]] == list(TRIALS)

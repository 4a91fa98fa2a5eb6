"""The work of executors, and their messages when they cannot do it; no JVM is started."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.run.runner import RunnerError
from pulsar_ml.campaign.store.schema import ROW
from pulsar_ml.campaign.store.staging import open_staging
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native
from pulsar_ml.distributed import tasks
from pulsar_ml.distributed.runner import failed_tasks, failed_wave
from pulsar_ml.distributed.shipping import is_installed, link_installed, pack, sources
from pulsar_ml.distributed.tasks import (
    MARK,
    ExecutorError,
    Work,
    begun_before,
    ledger_rows,
    rows_of,
    runner_for,
    work_for,
)
from pulsar_ml.errors import UsageError
from pulsar_ml.terminal.command_line import DEFAULT_SUITES
from tests.harness.toys.build_toys import toys_path

REGISTRY = "tests.spark.sweep_suites"


def work(**changes: object) -> Work:
    options = TrialOptions(module=str(toys_path()))
    job = Job("a-run", load_native(options.module).BUILD_ID, options)
    plan = Plan(("counter", "tattler"), 5, 6, 2, options)
    result = work_for(job, list(plan.chunks()), REGISTRY)
    return replace(result, **changes)  # type: ignore[arg-type]


def test_a_task_gives_one_batch_of_rows_for_each_chunk_row() -> None:
    found = list(rows_of(work(), [0, 3]))
    assert all(batch.schema.equals(ROW) for batch in found)
    assert [(batch["suite"][0].as_py(), batch["seed"].to_pylist()) for batch in found] == [
        ("counter", [5, 6, 7]),
        ("tattler", [8, 9, 10]),
    ]


def test_work_travels_without_a_class_of_pulsar_ml() -> None:
    assert b"pulsar_ml.campaign" not in pickle.dumps(work())


def test_an_executor_without_pulsar_ml_says_so_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared = work()
    monkeypatch.setitem(sys.modules, "pulsar_ml.campaign.trial.chunk", None)
    with pytest.raises(
        ExecutorError, match="cannot import pulsar_ml .* install the wheel"
    ) as raised:
        runner_for(prepared)
    assert "\n" not in str(raised.value)


def test_an_executor_with_another_build_says_so_in_one_sentence() -> None:
    with pytest.raises(
        ExecutorError, match="but this sweep is about build another; install the same wheel"
    ):
        runner_for(work(build_id="another"))


def test_an_executor_without_the_native_module_or_the_suites_says_so() -> None:
    with pytest.raises(ExecutorError, match="no native module /nowhere/x.so"):
        runner_for(work(options={"module": "/nowhere/x.so"}))
    with pytest.raises(ExecutorError, match="shipped suites nowhere"):
        runner_for(work(registry="nowhere"))


def spark_error(text: str) -> Exception:
    return RuntimeError(
        "An error occurred while calling o1.x.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage "
        f"failure: Task 2 in stage 7.0 failed 1 times, most recent failure: {text}"
    )


def test_a_failed_job_names_its_chunk_and_leaves_the_others() -> None:
    chunks = list(Plan(("a",), 0, 8, 4, TrialOptions()).chunks())
    crash = "Python worker exited unexpectedly (crashed): Fatal Python error: Aborted\n\nStack:"
    wave = failed_wave(chunks, spark_error(crash))
    assert [str(failure) for failure in wave.failures] == [
        "chunk 2 (a, seeds 4 to 5): its Python worker died (Aborted)"
    ]
    assert wave.left == [chunks[0], chunks[1], chunks[3]]
    thrown = (
        "Traceback (most recent call last):\n  File x\nMemoryError: no room\n"
        "\tat org.apache.spark.x"
    )
    assert failed_wave(chunks, spark_error(thrown)).failures[0].message == "MemoryError: no room"


def test_a_failed_task_of_several_chunks_hands_all_back_and_tells_them_apart() -> None:
    chunks = list(Plan(("a",), 0, 8, 4, TrialOptions()).chunks())
    tasks = [chunks[:1], chunks[1:2], chunks[2:]]
    wave, suspects = failed_tasks(chunks, tasks, spark_error("MemoryError: no room"))
    assert (wave.left, wave.failures, suspects) == (chunks, [], chunks[2:])
    with pytest.raises(RunnerError):
        failed_tasks(chunks, tasks[:2], spark_error("MemoryError: no room"))


def test_what_no_chunk_is_guilty_of_ends_the_sweep() -> None:
    chunks = list(Plan(("a",), 0, 8, 4, TrialOptions()).chunks())
    with pytest.raises(RunnerError, match="^this executor is unfit$"):
        failed_wave(chunks, spark_error(f"spark.tasks.{MARK}this executor is unfit\n\tat x"))
    with pytest.raises(RunnerError, match="the cluster is gone"):
        failed_wave(chunks, RuntimeError(": java.lang.IllegalStateException: the cluster is gone"))


def test_the_zip_holds_a_strangers_package_and_nothing_compiled(tmp_path: Path) -> None:
    names = zipfile.ZipFile(pack(tmp_path / "one.zip", "tests.spark.sweep_suites")).namelist()
    assert {"tests/__init__.py", "tests/spark/sweep_suites.py"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"tests"}
    assert all(name.endswith(".py") for name in names)
    again = pack(tmp_path / "two.zip", "tests.spark.sweep_suites")
    assert again.read_bytes() == (tmp_path / "one.zip").read_bytes()


def test_installed_suites_are_not_sent() -> None:
    assert is_installed(DEFAULT_SUITES) and not is_installed(REGISTRY)


def test_the_zip_and_the_linked_package_are_all_that_a_task_imports(tmp_path: Path) -> None:
    stranger = tmp_path / "elsewhere" / "my_suites.py"
    stranger.parent.mkdir()
    stranger.write_text("SUITES = {}\n")
    sys.path.insert(0, str(stranger.parent))
    try:
        archive = pack(tmp_path / "apps.zip", "my_suites")
    finally:
        sys.path.remove(str(stranger.parent))
    site = link_installed(tmp_path / "site")
    assert [path.name for path in site.iterdir()] == ["pulsar_ml"]
    code = (
        f"import sys; sys.path[:0] = {[str(archive), str(site)]!r}\n"
        "import pulsar_ml.distributed.tasks as tasks, pulsar_ml.campaign.trial.chunk, my_suites\n"
        "print(tasks.__file__, my_suites.__file__, 'pyspark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    tasks, suites, pyspark = done.stdout.split()
    assert tasks.startswith(str(site)) and suites.startswith(str(archive))
    assert pyspark == "False"


def test_suites_that_cannot_be_sent_are_refused() -> None:
    for name in ("nowhere_at_all", "sys"):
        with pytest.raises(UsageError, match="executors cannot have it"):
            sources(name)


@pytest.mark.parametrize("staged", [False, True])
def test_a_task_begins_no_chunk_when_the_time_is_over(tmp_path: Path, *, staged: bool) -> None:
    place = None
    if staged:
        directory, token = open_staging(tmp_path)
        place = (str(directory), token)
    make = ledger_rows if staged else rows_of
    over = work(ends=time.time(), staging=place)
    assert list(make(over, [0, 3])) == []
    assert len(list(make(replace(over, ends=time.time() + 1e6), [0, 3]))) == 2


def test_a_task_of_a_wave_that_is_whole_is_made_whole() -> None:
    assert len(list(rows_of(work(ends=time.time(), whole=True), [0, 3]))) == 2


def test_a_task_that_is_repeated_is_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "earlier_attempts", lambda: 1)
    assert len(list(rows_of(work(ends=time.time()), [0, 3]))) == 2


def test_chunks_begin_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(tasks, "time", SimpleNamespace(time=lambda: next(clock)))
    chunks: list[tuple[Any, ...]] = [(number,) for number in range(6)]
    begun = begun_before(3, chunks)
    assert [chunk[0] for chunk in begun] == [0, 1, 2]

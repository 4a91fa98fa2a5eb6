"""Compaction: fewer files with equal rows after a kill at any moment, and a run that resumes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.store import compaction
from pulsar_ml.campaign.store.compaction import (
    BESIDE,
    WHOLE,
    CompactionError,
    compact,
    groups_of,
    settle,
)
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.store.store import (
    RunStore,
    read_chunks,
    read_trials,
    read_violations,
    waves_of,
)
from pulsar_ml.cli.distribute.compact import command as main
from pulsar_ml.errors import UsageError
from tests.campaign.rows import stable_rows
from tests.campaign.test_resume import PLAN, Killed, Mortal, content, kill, session

READ = (read_trials, read_violations, read_chunks)


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("run") / "run"
    assert session(directory).status == "finished"
    assert len(waves_of(directory)) == PLAN.chunk_count
    return directory


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "run")
    return tmp_path / "run"


def same_rows(directory: Path, run: Path) -> None:
    for read in READ:
        assert stable_rows(read(directory)) == stable_rows(read(run))


def command(directory: Path, *options: str) -> str:
    done = CliRunner().invoke(main, [str(directory), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_rows_stay_and_files_become_few(copy: Path, run: Path) -> None:
    assert command(copy) == f"4 waves in 1 file of each table in {copy}\n"
    same_rows(copy, run)
    for table in ("trials", "violations", "chunks"):
        assert [path.name for path in (copy / table).iterdir()] == ["wave-00003.parquet"]
    assert not (copy / BESIDE).exists()
    past = past_of(copy)
    past.store.close()
    assert (past.waves, len(past.done), past.summary.trials) == (4, PLAN.chunk_count, PLAN.trials)
    backup = open_run(copy)
    assert sum(map(len, backup.trials())) == PLAN.trials
    before = content(copy)
    assert command(copy) == f"1 wave in 1 file of each table in {copy}\n"
    assert content(copy) == before, "and it may be said twice"


def test_files_are_merged_until_they_are_large(copy: Path, run: Path) -> None:
    assert "in 2 files" in command(copy, "--file-rows", "12"), "of 6 and 7 trials a wave"
    assert waves_of(copy) == ["wave-00001.parquet", "wave-00003.parquet"]
    same_rows(copy, run)
    assert "2 waves in 2 files" in command(copy, "--file-rows", "12")


@given(st.lists(st.integers(0, 30)), st.integers(1, 50))
def test_neighbours_are_grouped_and_grouping_again_changes_nothing(
    rows: list[int], most: int
) -> None:
    names = [f"{number:05}" for number in range(len(rows))]
    groups = groups_of(names, rows, most)
    assert [name for group in groups for name in group] == names
    sums = [sum(rows[int(name)] for name in group) for group in groups]
    assert all(total >= most for total in sums[:-1])
    assert groups_of(names[: len(sums)], sums, most) == [[name] for name in names[: len(sums)]]


@pytest.mark.parametrize("at_once", [True, False])
def test_killed_at_any_moment_it_leaves_a_whole_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    if not at_once:
        monkeypatch.setattr(compaction, "exchange", compaction.exchange_by_renames)
    points = 0
    while True:
        directory = tmp_path / str(points)
        shutil.copytree(run, directory)
        with pytest.MonkeyPatch.context() as patch:
            mortal = Mortal(patch, points + 1, before=points % 2 == 0)
            patch.setattr(compaction, "exchange", mortal.counted(compaction.exchange))
            try:
                store = RunStore.reopen(directory)
                compact(directory, waves_of(directory))
            except Killed:
                pass
            else:
                break
            finally:
                store.close()
        if at_once:
            same_rows(directory, run)  # for readers at this moment
        past = past_of(directory)
        past.store.close()
        assert len(past.done) == PLAN.chunk_count and past.waves == 4
        same_rows(directory, run)
        assert not (directory / BESIDE).exists()
        points += 1
    assert points > 12, "it has many moments"


def test_a_run_that_was_compacted_goes_on(run: Path, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    kill(directory, 65, before=True)
    before = len(waves_of(directory))
    assert 1 < before < PLAN.chunk_count
    command(directory)
    assert session(directory).status == "finished"
    assert waves_of(directory)[0] == f"wave-{before - 1:05}.parquet"
    same_rows(directory, run)


def test_a_run_that_is_written_or_damaged_is_refused_and_left_alone(copy: Path) -> None:
    store = RunStore.reopen(copy)
    before = content(copy)
    done = CliRunner().invoke(main, [str(copy)])
    assert done.exit_code == 2 and "another process is writing" in done.stderr
    store.close()
    (copy / "chunks" / waves_of(copy)[2]).unlink()
    done = CliRunner().invoke(main, [str(copy)])
    assert done.exit_code == 2 and "damaged or incomplete" in done.stderr
    assert "there is no run in" in CliRunner().invoke(main, [str(copy / "nowhere")]).stderr
    assert content(copy).items() <= before.items()


def test_rows_that_got_lost_are_noticed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsar_ml.campaign.store.staging import merge_files as real

    monkeypatch.setattr(
        compaction, "merge_files", lambda paths, table, into: real(paths[1:], table, into)
    )
    before = content(copy)
    with pytest.raises(CompactionError, match="has .* rows, but the files that it replaces have"):
        compact(copy, waves_of(copy))
    RunStore.reopen(copy).close()
    assert content(copy) == before


@pytest.mark.parametrize(
    "text", ["", "null", "{}", "[1]", '"x"', "[" * 100_000, "1" * 20_000, "\ud800"]
)
def test_a_damaged_note_is_refused_and_nothing_changes(copy: Path, text: str) -> None:
    note = copy / BESIDE / WHOLE
    note.parent.mkdir()
    note.write_bytes(text.encode(errors="surrogatepass"))
    before = content(copy)
    with pytest.raises(UsageError) as refused:
        settle(copy)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500
    assert content(copy) == before


def test_a_note_that_is_a_pipe_is_refused(copy: Path) -> None:
    (copy / BESIDE).mkdir()
    os.mkfifo(copy / BESIDE / WHOLE)
    with pytest.raises(UsageError, match="no plain file"):
        settle(copy)

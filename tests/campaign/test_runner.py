"""Runners and waves: equal rows from every runner; finished chunks survive crashes and Ctrl-C."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.plan.plan import Chunk, Plan
from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.run.runner import (
    ChunkFailure,
    InlineRunner,
    PoolRunner,
    Runner,
    RunnerError,
    Watch,
    Wave,
)
from pulsar_ml.campaign.run.waves import (
    MAX_FAILURES,
    WAVE_CHUNKS,
    WAVE_TRIALS,
    run_campaign,
    wave_length,
)
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.store.schema import ROW
from pulsar_ml.campaign.store.store import RunStore, read_trials, read_violations
from pulsar_ml.campaign.trial.chunk import BuildMismatchError, Job, Trial, run_chunk
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, TrialResult
from tests.campaign.rows import BUILD_ID, JOB, SUITE, made_up_trial

SUITES = {SUITE.name: SUITE}
DEADLY_SEED = 17
QUIET = Watch(lambda: False, lambda trials, violations: None)


def deadly_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    if seed == DEADLY_SEED:
        os.kill(os.getpid(), signal.SIGKILL)
    return made_up_trial(suite, seed, options)


def hostile_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Kill the supervisor once; the file ``options.mutant`` remembers that it happened."""
    if seed == DEADLY_SEED and options.mutant and not os.path.exists(options.mutant):
        Path(options.mutant).touch()
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    return made_up_trial(suite, seed, options)


def always_hostile_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    if seed == DEADLY_SEED:
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    return made_up_trial(suite, seed, options)


def broken_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    raise RunnerError("no trial can run here")


def thirsty_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    if seed == DEADLY_SEED:
        raise OverflowError("no room")
    return made_up_trial(suite, seed, options)


def plan_of(seeds: int, pieces: int) -> Plan:
    return Plan((SUITE.name,), 0, seeds, pieces, TrialOptions())


def stable(wave: Wave) -> list[dict[str, object]]:
    """Return rows without the columns that differ between runs."""
    rows = wave.table().drop_columns(["finished_at", "wall_us"]).to_pylist()
    return sorted(rows, key=lambda row: row["seed"])


def test_a_chunk_has_one_row_for_each_of_its_seeds() -> None:
    batch = run_chunk(SUITE, Chunk(3, SUITE.name, 10, 20), JOB, trial=made_up_trial)
    assert batch is not None
    assert batch.schema.equals(ROW)
    assert batch["seed"].to_pylist() == list(range(10, 20))
    assert set(batch["chunk_id"].to_pylist()) == {3}
    assert set(batch["run_id"].to_pylist()) == {JOB.run_id}
    assert [len(found) for found in batch["violations"].to_pylist()] == [
        2,
        0,
        0,
        0,
        0,
        2,
        0,
        0,
        0,
        0,
    ]


def test_a_chunk_of_another_build_is_refused() -> None:
    with pytest.raises(BuildMismatchError, match=f"build {BUILD_ID} .* build another"):
        run_chunk(
            SUITE,
            Chunk(0, SUITE.name, 0, 2),
            Job("r", "another", TrialOptions()),
            trial=made_up_trial,
        )


def test_the_pool_gives_the_rows_of_inline() -> None:
    chunks = list(plan_of(40, 7).chunks())
    pool = PoolRunner(SUITES, workers=2, trial=made_up_trial)
    try:
        spread = pool.run(JOB, chunks, QUIET)
    finally:
        pool.close()
    inline = InlineRunner(SUITES, trial=made_up_trial).run(JOB, chunks, QUIET)
    assert stable(spread) == stable(inline)
    assert [row["seed"] for row in stable(inline)] == list(range(40))
    assert not spread.failures and not spread.left


@pytest.mark.parametrize("workers", [1, 3])
def test_a_trial_that_kills_its_process_has_a_row_like_others(workers: int) -> None:
    pool = PoolRunner(SUITES, workers=workers, trial=deadly_trial)
    try:
        wave = pool.run(JOB, list(plan_of(40, 8).chunks()), QUIET)
    finally:
        pool.close()
    assert not wave.failures
    found = stable(wave)
    assert [row["seed"] for row in found] == list(range(40))
    violations: Any = found[DEADLY_SEED]["violations"]
    assert [each["invariant"] for each in violations] == ["crash"]


def test_a_lost_supervisor_is_replaced_and_its_chunk_runs_again(tmp_path: Path) -> None:
    job = Job(JOB.run_id, JOB.build_id, TrialOptions(mutant=str(tmp_path / "died")))
    pool = PoolRunner(SUITES, workers=2, trial=hostile_trial)
    try:
        wave = pool.run(job, list(plan_of(40, 8).chunks()), QUIET)
    finally:
        pool.close()
    assert not wave.failures
    assert [row["seed"] for row in stable(wave)] == list(range(40))


def test_a_seed_that_ends_its_supervisor_again_and_again_costs_its_own_row() -> None:
    chunks = list(plan_of(40, 8).chunks())
    pool = PoolRunner(SUITES, workers=2, trial=always_hostile_trial)
    try:
        wave = pool.run(JOB, chunks, QUIET)
    finally:
        pool.close()
    assert not wave.failures
    assert [row["seed"] for row in stable(wave)] == list(range(40))
    rows: list[Any] = stable(wave)
    broken = {row["seed"]: {found["invariant"] for found in row["violations"]} for row in rows}
    assert {seed for seed, names in broken.items() if "crash" in names} == {DEADLY_SEED}


def test_an_error_that_every_trial_would_meet_reaches_the_caller() -> None:
    for runner in runners(broken_trial):
        for _ in range(2):  # a runner stays usable after it
            with pytest.raises(RunnerError, match="no trial can run here"):
                runner.run(JOB, list(plan_of(4, 4).chunks()), QUIET)
        runner.close()


def runners(trial: Trial) -> list[Runner]:
    return [InlineRunner(SUITES, trial=trial), PoolRunner(SUITES, workers=2, trial=trial)]


def test_a_trial_that_raises_costs_its_chunk() -> None:
    chunks = list(plan_of(40, 8).chunks())
    for runner in runners(thirsty_trial):
        wave = runner.run(JOB, chunks, QUIET)
        runner.close()
        assert wave.failures == [ChunkFailure(chunks[3], "OverflowError: no room")]
        assert [row["seed"] for row in stable(wave)] == [*range(15), *range(20, 40)]


def stop_after(calls: int) -> Callable[[], bool]:
    seen = 0

    def stopped() -> bool:
        nonlocal seen
        seen += 1
        return seen > calls

    return stopped


@pytest.mark.parametrize("calls", [0, 1, 7, 12])
def test_inline_stops_between_two_trials_and_keeps_whole_chunks(calls: int) -> None:
    chunks = list(plan_of(20, 4).chunks())
    watch = Watch(stop_after(calls), lambda trials, violations: None)
    wave = InlineRunner(SUITES, trial=made_up_trial).run(JOB, chunks, watch)
    whole = calls // 5
    assert [row["seed"] for row in stable(wave)] == list(range(5 * whole))
    assert wave.left == chunks[whole:]


def test_the_pool_keeps_the_chunks_that_ran_when_it_is_asked_to_stop() -> None:
    chunks = list(plan_of(20, 4).chunks())
    pool = PoolRunner(SUITES, workers=1, trial=made_up_trial)
    try:
        wave = pool.run(JOB, chunks, Watch(stop_after(1), lambda trials, violations: None))
    finally:
        pool.close()
    assert [row["seed"] for row in stable(wave)] == list(range(5))
    assert wave.left == chunks[1:]


def waiting_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Seed 0 waits for somebody who writes to the named pipe ``options.mutant``."""
    if seed == 0:
        Path(options.mutant or "").read_bytes()
    return made_up_trial(suite, seed, options)


def test_a_wave_of_the_pool_leaves_what_is_under_way_to_the_next_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    job = Job("r", BUILD_ID, TrialOptions(mutant=str(pipe)))
    first, *others = plan_of(20, 4).chunks()
    pool = PoolRunner(SUITES, workers=2, trial=waiting_trial)
    try:
        wave = pool.run(job, [first, *others[:2]], replace(QUIET, carry=True))
        assert pool.under_way
        assert [row["seed"] for row in stable(wave)] == list(range(5, 15))
        wave = pool.run(job, others[2:], replace(QUIET, carry=True))
        assert pool.under_way
        assert [row["seed"] for row in stable(wave)] == list(range(15, 20))
        pipe.write_bytes(b"")
        wave = pool.run(job, [], QUIET)
        assert not pool.under_way
        assert [row["seed"] for row in stable(wave)] == list(range(5))
    finally:
        pool.close()


def test_a_campaign_on_a_pool_ends_what_waves_left(tmp_path: Path) -> None:
    """With every stop the chunks under way are complete, and a resumed run would miss the rest."""
    for stop in (None, 3, 9, 30):
        pool = PoolRunner(SUITES, workers=3, trial=made_up_trial)
        store = RunStore(tmp_path / str(stop))
        stopped = stop_after(stop) if stop is not None else lambda: False
        try:
            outcome = run_campaign(
                plan_of(60, 30), JOB, pool, store, stopped=stopped, wave_seconds=0.0
            )
        finally:
            pool.close()
        seeds = seeds_of(tmp_path / str(stop))
        assert not pool.under_way
        assert seeds == list(range(outcome.summary.trials)) and len(seeds) % 2 == 0
        assert (outcome.status == "finished") == (len(seeds) == 60)
    assert seeds_of(tmp_path / "None") == list(range(60))


@pytest.mark.parametrize("kind", ["inline", "pool"])
def test_no_chunk_begins_when_the_time_is_over(kind: str) -> None:
    chunks = list(plan_of(20, 4).chunks())
    runner: Runner = (
        InlineRunner(SUITES, trial=made_up_trial)
        if kind == "inline"
        else PoolRunner(SUITES, workers=1, trial=made_up_trial)
    )
    try:
        over = runner.run(JOB, chunks, replace(QUIET, ends=time.monotonic()))
        before = runner.run(JOB, chunks, replace(QUIET, ends=time.monotonic() + 1e6))
        whole = runner.run(JOB, chunks, replace(QUIET, ends=time.monotonic(), whole=True))
    finally:
        runner.close()
    assert over.left == chunks and not over.kept
    for wave in (before, whole):
        assert not wave.left and [row["seed"] for row in stable(wave)] == list(range(20))


class Scripted:
    """A runner that fails by a script and otherwise runs inline."""

    name = "scripted"
    slots = 2
    under_way = False

    def __init__(self, fails: Callable[[Chunk], bool] = lambda chunk: False) -> None:
        self._inline = InlineRunner(SUITES, trial=made_up_trial)
        self._fails = fails
        self.waves: list[int] = []

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        """Run like Spark: one failed chunk loses the rows of its wave."""
        self.waves.append(len(chunks))
        for chunk in chunks:
            if self._fails(chunk):
                left = [other for other in chunks if other is not chunk]
                return Wave(failures=[ChunkFailure(chunk, "as scripted")], left=left)
        return self._inline.run(job, chunks, watch)

    def close(self) -> None:
        pass


def seeds_of(directory: Path) -> list[int]:
    return sorted(read_trials(directory)["seed"].to_pylist())


def test_a_campaign_writes_every_trial_once_and_counts_what_it_wrote(tmp_path: Path) -> None:
    shown: list[Progress] = []
    runner: Runner = Scripted()
    outcome = run_campaign(plan_of(53, 9), JOB, runner, RunStore(tmp_path), show=shown.append)
    assert outcome.status == "finished"
    assert seeds_of(tmp_path) == list(range(53))
    assert outcome.summary.trials == 53
    assert outcome.summary.violations == read_violations(tmp_path).num_rows == 22
    assert outcome.waves == len(list((tmp_path / "trials").iterdir()))
    assert [moment.trials for moment in shown] == sorted(moment.trials for moment in shown)
    assert shown[-1].trials == 53 and shown[-1].seconds_left == 0


def test_a_failed_chunk_leaves_the_rest_of_its_wave_to_run_again(tmp_path: Path) -> None:
    runner = Scripted(lambda chunk: chunk.chunk_id in (1, 6))
    outcome = run_campaign(plan_of(50, 10), JOB, runner, RunStore(tmp_path))
    assert outcome.status == "failed"
    assert [failure.chunk and failure.chunk.chunk_id for failure in outcome.failures] == [1, 6]
    assert seeds_of(tmp_path) == [*range(5), *range(10, 30), *range(35, 50)]


def test_a_campaign_gives_up_after_enough_failures(tmp_path: Path) -> None:
    outcome = run_campaign(plan_of(100, 100), JOB, Scripted(lambda chunk: True), RunStore(tmp_path))
    assert outcome.status == "failed"
    assert len(outcome.failures) == MAX_FAILURES
    assert seeds_of(tmp_path) == []


def test_a_runner_that_cannot_go_on_ends_the_campaign_and_keeps_earlier_waves(
    tmp_path: Path,
) -> None:
    def fails(chunk: Chunk) -> bool:
        if chunk.chunk_id == 4:
            raise RunnerError("the cluster is gone")
        return False

    outcome = run_campaign(
        plan_of(50, 10), JOB, Scripted(fails), RunStore(tmp_path), wave_seconds=0.0
    )
    assert outcome.status == "failed"
    assert outcome.failures == [ChunkFailure(None, "the cluster is gone")]
    assert seeds_of(tmp_path) == list(range(20))


def test_an_interrupted_campaign_keeps_what_finished(tmp_path: Path) -> None:
    outcome = run_campaign(
        plan_of(50, 10), JOB, Scripted(), RunStore(tmp_path), stopped=stop_after(20)
    )
    assert outcome.status == "interrupted"
    seeds = seeds_of(tmp_path)
    assert 0 < len(seeds) < 50
    assert seeds == list(range(len(seeds))) and len(seeds) % 5 == 0
    assert outcome.summary.trials == len(seeds)


def test_a_second_interrupt_drops_the_wave_and_keeps_earlier_ones(tmp_path: Path) -> None:
    def fails(chunk: Chunk) -> bool:
        if chunk.chunk_id == 2:
            raise KeyboardInterrupt
        return False

    outcome = run_campaign(plan_of(50, 10), JOB, Scripted(fails), RunStore(tmp_path))
    assert outcome.status == "interrupted"
    assert seeds_of(tmp_path) == list(range(10))


def test_each_signature_is_announced_once(tmp_path: Path) -> None:
    found: list[Group] = []
    run_campaign(plan_of(50, 10), JOB, Scripted(), RunStore(tmp_path), on_found=found.append)
    assert sorted(group.invariant for group in found) == ["I1", "I2"]


def test_waves_start_with_one_chunk_a_slot_and_grow_to_the_target_within_bounds() -> None:
    assert wave_length(4, None, 10, 30.0) == 4
    assert wave_length(4, 3.0, 10, 30.0) == 40
    assert wave_length(4, 300.0, 10, 30.0) == 4
    assert wave_length(4, 0.001, 10, 30.0) == WAVE_CHUNKS
    assert wave_length(4, 0.1, 10_000, 30.0) == WAVE_TRIALS // 10_000
    assert wave_length(4, 0.1, 10 * WAVE_TRIALS, 30.0) == 1

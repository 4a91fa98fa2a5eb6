"""After any kill in the middle of a sweep, ``--resume`` ends with the trials of a whole sweep.

Trials of some seeds report that they were reached and wait there for their end, so nothing depends
on time. Chunks of one wave run beside those of the next, so several may wait at once.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pulsar_ml.campaign.store.store import read_chunks, read_trials, read_violations
from pulsar_ml.campaign.trial.engines import program_of
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native
from tests import ROOT
from tests.campaign.rows import stable_rows
from tests.harness.toys.build_toys import toys_path
from tests.spark import hostile_sweep
from tests.spark.session.one_jvm import OneJvm
from tests.spark.sweep_suites import GATE, SUITES, TOYS
from tests.spark.test_sweep import DRIVER, TIMEOUT, environment, patient, sweep

SEEDS = 16
CHUNK = 2  # seeds
NEAR = (3, 7, 10, 13)  # each in a chunk of its own
POOL = ("--runner", "pool", "--workers", "2")
Victims = Callable[[subprocess.Popen[bytes], psutil.Process], list[psutil.Process]]


def number_of(seed: int) -> int:
    """The number that a seed's trial compares with the gate's."""
    counter = load_native(str(toys_path())).SUBJECTS["counter"]
    return program_of(counter, SUITES["gated"], seed, TrialOptions()).settings["start"]


def gated_seeds() -> list[int]:
    """A seed at or after each of ``NEAR`` whose number no other one has."""
    numbers = [number_of(seed) for seed in range(SEEDS)]
    alone = [seed for seed in range(SEEDS) if numbers.count(numbers[seed]) == 1]
    seeds = [next(seed for seed in alone if seed >= near) for near in NEAR]
    assert len({seed // CHUNK for seed in seeds}) == len(seeds)
    return seeds


class Gate:
    """The gate at which the trials of some seeds wait."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._waiting: dict[int, psutil.Process] = {}  # by number
        (directory / "closed").mkdir(parents=True)
        os.mkfifo(directory / "arrived")
        # For reading and writing, so that it does not come to an end between two writers.
        self._arrived = os.open(directory / "arrived", os.O_RDWR | os.O_NONBLOCK)

    def close(self, *seeds: int) -> None:
        for seed in seeds:
            os.mkfifo(self._closed(seed))

    def open(self, *seeds: int) -> None:
        """Lets trials of these seeds through that arrive later."""
        for seed in seeds:
            self._closed(seed).unlink()

    def release(self, *seeds: int) -> None:
        """Opens it for a trial of each of these seeds that waits, too."""
        for seed in seeds:
            self._closed(seed).write_bytes(b"")  # as soon as the trial has it open
        self.open(*seeds)

    def _closed(self, seed: int) -> Path:
        return self.directory / "closed" / str(number_of(seed))

    def wait(self, seed: int, log: Path, driver: subprocess.Popen[bytes]) -> psutil.Process:
        """The process of the seed's trial, as soon as it waits here.

        Raises AssertionError when the driver has ended.
        """
        number = number_of(seed)
        for _ in range(TIMEOUT):
            self._read(0 if number in self._waiting else 1)
            trial = self._waiting.pop(number, None)
            if trial is not None and belongs_to(driver, trial):
                return trial
            assert driver.poll() is None, log.read_text()
        raise AssertionError(f"no trial arrived within {TIMEOUT} s: {log.read_text()}")

    def _read(self, seconds: float) -> None:
        if select.select([self._arrived], [], [], seconds)[0]:
            for line in os.read(self._arrived, 1000).splitlines():
                number, process = map(int, line.split())
                with suppress(psutil.NoSuchProcess):
                    self._waiting[number] = psutil.Process(process)

    def kill(self, victims: Sequence[psutil.Process], trial: psutil.Process) -> None:
        """Kills processes, and waits for the ends of ``trial`` and of others below them."""
        below = [trial, trial.parents()[0]]
        self._read(0)
        for number, other in list(self._waiting.items()):
            if {other, *other.parents()} & set(victims):
                below += [other, other.parents()[0]]
                del self._waiting[number]
        kill(victims)
        # Their parents are dead or were stopped, and these processes are gone as well.
        assert psutil.wait_procs(below, timeout=TIMEOUT)[1] == []


def belongs_to(driver: subprocess.Popen[bytes], trial: psutil.Process) -> bool:
    """False for the trial of a process that was killed."""
    try:
        above = trial.parents()
        return any(one.pid == driver.pid or one.name() == "java" for one in above)
    except psutil.NoSuchProcess:
        return False


class Sweep:
    """A command, which may be run several times."""

    def __init__(self, directory: Path, options: Sequence[str], gate: Gate) -> None:
        self.directory = directory
        self.log = directory / "log"
        toys = str(toys_path())
        self.options = [
            *("--suites", "sweep_suites", "--module", "sweep_suites"),
            *(
                "--suite",
                "gated",
                "--seeds",
                str(SEEDS),
                "--chunk-size",
                str(CHUNK),
                "--wave-seconds",
                "0.001",
            ),
            *("--out", "out", *patient(options)),
        ]
        self.env = environment(**{TOYS: toys, GATE: str(gate.directory)})
        for name, value in ((TOYS, toys), (GATE, str(gate.directory))):
            self.options += ["--conf", f"spark.executorEnv.{name}={value}"]

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", DRIVER, *self.options, *more],
                cwd=self.directory,
                env=self.env,
                stdout=log,
                stderr=log,
            )


def python_worker(driver: subprocess.Popen[bytes], trial: psutil.Process) -> list[psutil.Process]:
    return [trial.parents()[1]]


def supervisor(driver: subprocess.Popen[bytes], trial: psutil.Process) -> list[psutil.Process]:
    return [trial.parents()[0]]


def executor(driver: subprocess.Popen[bytes], trial: psutil.Process) -> list[psutil.Process]:
    return [next(process for process in trial.parents() if process.name() == "java")]


def only_driver(driver: subprocess.Popen[bytes], trial: psutil.Process) -> list[psutil.Process]:
    return [psutil.Process(driver.pid)]


def everything(driver: subprocess.Popen[bytes], trial: psutil.Process) -> list[psutil.Process]:
    """But not the workers of a standalone cluster, which start executors and are none."""
    process = psutil.Process(driver.pid)
    return [process, *process.children(recursive=True), *executor_tree(trial)]


def executor_tree(trial: psutil.Process) -> list[psutil.Process]:
    above = trial.parents()
    names = [process.name() for process in above]
    return above[: names.index("java") + 1] if "java" in names else []


def kill(victims: Sequence[psutil.Process]) -> None:
    for process in victims:
        with suppress(psutil.NoSuchProcess):  # its chunk ended since they were listed
            process.suspend()  # so that none sees the end of another one
    for process in victims:
        with suppress(psutil.NoSuchProcess):  # it ended with its parent
            process.kill()


def whole_chunks(run: Path) -> list[int]:
    """The seeds that a run has, which are those of its ledger; once each."""
    done = sorted(read_trials(run)["seed"].to_pylist())
    chunks = [(line["seed_lo"], line["seed_hi"]) for line in read_chunks(run).to_pylist()]
    assert done == [seed for low, high in sorted(chunks) for seed in range(low, high)]
    assert all(high - low == CHUNK for low, high in chunks)
    return done


def story(sweep: Sweep, gate: Gate, steps: Sequence[tuple[Victims, bool]]) -> None:
    """Kills something at each gate; a sweep that ends goes on, at last without Spark."""
    seeds = gated_seeds()[: len(steps)]
    gate.close(*seeds)
    driver = sweep.start()
    try:
        for step, (victims, ends) in enumerate(steps):
            trial = gate.wait(seeds[step], sweep.log, driver)
            gate.open(seeds[step])
            gate.kill(victims(driver, trial), trial)
            if ends:
                assert driver.wait(TIMEOUT) == -signal.SIGKILL
                done = whole_chunks(sweep.directory / "out")
                assert set(range(CHUNK)) <= set(done), "of the first wave"
                assert seeds[step] not in done
                last = step + 1 == len(steps)
                driver = sweep.start(
                    "--resume", "out", "--trust", *((*POOL, "--rows", "driver") if last else ())
                )
        assert driver.wait(TIMEOUT) == 0, sweep.log.read_text()
    finally:
        driver.kill()
        driver.wait()
    trials = read_trials(sweep.directory / "out")
    assert Counter(trials["seed"].to_pylist()) == Counter(range(SEEDS))
    assert len(set(trials["run_id"].to_pylist())) == 1
    assert read_violations(sweep.directory / "out").num_rows == 0, sweep.log.read_text()
    (sweep.directory / "undisturbed").mkdir()
    undisturbed = Sweep(sweep.directory / "undisturbed", ["--runner", "inline"], gate)
    assert undisturbed.start().wait(TIMEOUT) == 0
    assert stable_rows(trials) == stable_rows(read_trials(sweep.directory / "undisturbed" / "out"))


def test_a_pool(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    steps = [(supervisor, False), (only_driver, True), (everything, True), (supervisor, False)]
    story(Sweep(tmp_path, POOL, gate), gate, steps)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_and_on_it_goes(tmp_path: Path, workers: int) -> None:
    """Each worker has a trial that waits, of two waves; both are awaited and kept."""
    gate = Gate(tmp_path / "gate")
    sweep = Sweep(tmp_path, ["--runner", "pool", "--workers", str(workers)], gate)
    seeds = gated_seeds()[1 : 1 + workers]
    gate.close(*seeds)
    driver = sweep.start()
    try:
        for seed in seeds:
            gate.wait(seed, sweep.log, driver)
        driver.send_signal(signal.SIGINT)
        gate.release(*seeds)
        assert driver.wait(TIMEOUT) == 130, sweep.log.read_text()
    finally:
        driver.kill()
        driver.wait()
    text = sweep.log.read_text()
    assert "--resume out" in text.split("go on with: ")[1]
    expected = range(CHUNK * (seeds[-1] // CHUNK + 1))
    assert whole_chunks(tmp_path / "out") == list(expected), "the chunks that ran were waited for"
    assert sweep.start("--resume", "out", "--trust").wait(TIMEOUT) == 0
    assert sorted(read_trials(tmp_path / "out")["seed"].to_pylist()) == list(range(SEEDS))


def test_a_trial_that_waits_for_ever_is_reported_and_made_again(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    (seed, *_) = gated_seeds()
    gate.close(seed)
    sweep = Sweep(tmp_path, [*POOL, "--trial-seconds", "6"], gate)
    assert sweep.start().wait(TIMEOUT) == 1, sweep.log.read_text()
    assert sorted(read_trials(tmp_path / "out")["seed"].to_pylist()) == list(range(SEEDS))
    (row,) = read_violations(tmp_path / "out").to_pylist()
    message = "no execution ended within 6 s: the code under test blocks its process"
    assert (row["seed"], row["invariant"], row["message"]) == (
        seed,
        "hang",
        f"{message}; tried again: {message}",
    )
    (record,) = (tmp_path / "out" / "records").iterdir()
    replay = [
        sys.executable,
        "-m",
        "stress",
        "replay",
        str(record),
        "--trust",
        "--suites",
        "sweep_suites",
    ]
    env = {**sweep.env, "PYTHONPATH": str(ROOT / "tests" / "spark")}
    done = subprocess.run(
        [*replay, "--patience", "6"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"now: hang (running): {message}" in done.stdout


def test_hostile_seeds_cost_their_own_rows_in_a_pool(tmp_path: Path) -> None:
    hostile_sweep.check(tmp_path, lambda directory, *options: sweep(directory, *options, *POOL))


QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def on_cluster(master: str) -> list[str]:
    conf = ["--conf", f"spark.executor.extraJavaOptions={QUICK}"]
    return ["--master", master, "--task-cpus", "1", *conf]


STEPS = [(python_worker, False), (executor, False), (only_driver, True), (everything, True)]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("rows", "steps"), [("driver", STEPS), ("executors", [(executor, False), (everything, True)])]
)
def test_executors_in_processes_of_their_own(
    tmp_path: Path, rows: str, steps: Sequence[tuple[Victims, bool]]
) -> None:
    gate = Gate(tmp_path / "gate")
    story(
        Sweep(tmp_path, ["--master", "local-cluster[1,2,1024]", "--rows", rows], gate), gate, steps
    )
    assert not (tmp_path / "out" / ".staging").exists()


@pytest.mark.xdist_group("spark")
def test_a_standalone_cluster(tmp_path: Path, master: str) -> None:
    gate = Gate(tmp_path / "gate")
    options = [*on_cluster(master), "--conf", f"spark.driver.extraJavaOptions={QUICK}"]
    # test_executors_in_processes_of_their_own takes all steps.
    story(Sweep(tmp_path, options, gate), gate, [(executor, False), (only_driver, True)])


@pytest.mark.xdist_group("spark")
def test_hostile_seeds_cost_their_own_rows_on_executors(
    tmp_path: Path, master: str, spark_jvm: OneJvm
) -> None:
    conf = ["--conf", f"spark.executorEnv.{TOYS}={toys_path()}", "--rows", "executors"]

    def swept(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
        return spark_jvm.sweep(directory, *options, *on_cluster(master), *conf)

    hostile_sweep.check(tmp_path, swept)

"""Trials that crash, hang or eat memory become rows, and the rest of their chunk is unharmed."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.schema import LEDGER_ONLY, ROW
from pulsar_ml.campaign.trial.chunk import BuildMismatchError, Job, Trial
from pulsar_ml.campaign.trial.isolation import Isolation, SupervisorLostError
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.supervisor import SECOND_TRIES
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.search.child import Limits
from tests import ROOT
from tests.campaign.rogue_trials import (
    SEED,
    always,
    at_the_first_try,
    at_the_seed,
    one_run_a_second_left,
)
from tests.campaign.rows import BUILD_ID, SUITE, made_up_trial

# The time is for what never ends without a limit; trials that never end have a short one.
LIMITS = Limits(wall=300.0, cpu=None, memory=256 << 20, address_space=4 << 30)


@pytest.fixture(scope="module")
def isolation() -> Iterator[Isolation]:
    result = Isolation()
    yield result
    result.close()


def job(mutant: str | None = None, **limits: Any) -> Job:
    return Job("r", BUILD_ID, TrialOptions(mutant=mutant), dataclasses.replace(LIMITS, **limits))


def rows(isolation: Isolation, job: Job, seeds: range, trial: Trial) -> list[dict[str, Any]]:
    batch = isolation.run(SUITE, Chunk(4, SUITE.name, seeds.start, seeds.stop), job, trial=trial)
    assert batch.schema.equals(ROW)
    found: list[dict[str, Any]] = batch.to_pylist()
    assert [row["seed"] for row in found] == list(seeds)
    return found


def stable(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without the columns that differ between runs or belong to the chunk."""
    differing = {"finished_at", *(field.name for field in LEDGER_ONLY)}
    return [{name: value for name, value in row.items() if name not in differing} for row in found]


EXPECTED = {
    "segmentation fault": ("crash", "SIGSEGV ended the process of the code under test"),
    "abort": ("crash", "SIGABRT ended the process"),
    "stack overflow": ("crash", "SIGSEGV ended the process"),
    "exit": ("crash", "ended its process with exit status 3"),
    "kill": ("crash", "SIGKILL ended the process"),
    "last words": ("crash", "it printed:\n"),
    "waits": ("hang", "no execution ended within 4 s"),
    "computes": ("hang", "no execution ended within 4 s"),
    "memory": ("memory", "more than 256 MiB in memory"),
    "address space": ("memory", "no memory within 4096 MiB of address space"),
    "writes everywhere": ("crash", "wrote to the harness's pipe: b'garbage"),
    "closes everything": ("crash", "SIGKILL ended the process of the code under test"),
    "leaves processes": ("processes", "were still running after it, and were ended"),
    "leaves processes and aborts": ("crash", "SIGABRT ended the process"),
    "forks without end": ("processes", "has more than 64 processes at once"),
    "kills its group": ("crash", "SIGKILL ended the process"),
    "kills its supervisor": ("crash", "the trial ended the process that supervises it"),
}
AT_ONCE = {"leaves processes", "kills its supervisor"}  # not tried again, or before the row


def trials_of(supervisor: psutil.Process) -> list[psutil.Process]:
    """Return the processes of a supervisor's session that are not the supervisor."""
    session = os.getsid(supervisor.pid)
    return [
        process
        for process in psutil.process_iter()
        if process.pid != supervisor.pid and session_of(process) == session
    ]


def session_of(process: psutil.Process) -> int:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return -1


@pytest.mark.parametrize("deed", EXPECTED)
def test_what_a_trial_does_to_its_process_is_a_violation_of_its_seed(
    isolation: Isolation, deed: str
) -> None:
    invariant, message = EXPECTED[deed]
    done = job(deed, wall=4.0) if invariant == "hang" else job(deed)
    found = rows(isolation, done, range(12, 22), at_the_seed)
    others = [row for row in found if row["seed"] != SEED]
    expected = rows(isolation, done, range(12, 17), made_up_trial)
    assert stable(others[:5]) == stable(expected)
    (row,) = [row for row in found if row["seed"] == SEED]
    assert (row["verdict"], row["threads"], row["build_id"]) == ("violation", 4, BUILD_ID)
    (violation,) = row["violations"]
    assert violation["invariant"] == invariant and message in violation["message"]
    assert deed in AT_ONCE or "; tried again: " in violation["message"], "it is repeatable"
    record = ReplayRecord.from_json(violation["replay"])
    if deed != "leaves processes":  # the trial was complete, and has its own record
        assert (record.seed, record.invariant, record.mutant) == (SEED, invariant, deed)
    supervisor = psutil.Process(isolation._process.pid)  # type: ignore[union-attr]
    assert supervisor.children(recursive=True) == trials_of(supervisor) == [], "nothing is left"


def test_the_last_printed_lines_are_reported(isolation: Isolation) -> None:
    (row,) = rows(isolation, job("last words"), range(SEED, SEED + 1), at_the_seed)
    lines = row["violations"][0]["message"].splitlines()
    assert lines[1:] == [f"line {number}" for number in range(1994, 2000)]


def test_the_signature_is_of_the_signal_and_not_of_what_was_printed(isolation: Isolation) -> None:
    def signature(deed: str) -> str:
        (row,) = rows(isolation, job(deed), range(SEED, SEED + 1), at_the_seed)
        return str(row["violations"][0]["signature"])

    assert signature("abort") == signature("last words") != signature("exit")


def test_a_loss_that_does_not_come_back_keeps_what_the_second_try_found(
    isolation: Isolation, tmp_path: Path
) -> None:
    found = rows(isolation, job(str(tmp_path / "once")), range(12, 22), at_the_first_try)
    (violation,) = found[5]["violations"]
    assert "tried again alone, it completed, after 5 trials of its chunk" in violation["message"]
    assert (found[5]["verdict"], found[5]["operations"]) == ("violation", 400), "of the second try"
    assert [row["seed"] for row in found if row["verdict"] == "violation"] == [15, 17, 20]


def test_where_everything_is_lost_only_some_are_tried_again(isolation: Isolation) -> None:
    found = rows(isolation, job(), range(40), always)
    messages = [row["violations"][0]["message"] for row in found]
    assert sum("; tried again: " in message for message in messages) == SECOND_TRIES
    assert sum("; not tried again" in message for message in messages) == 40 - SECOND_TRIES
    assert [f"exit status {seed};" in message for seed, message in enumerate(messages)] == [
        True
    ] * 40


@settings(max_examples=15, deadline=None)
@given(crash=st.lists(st.booleans(), min_size=1, max_size=12), first=st.integers(0, 100))
def test_every_seed_has_one_row_whichever_are_lost(
    isolation: Isolation, crash: list[bool], first: int
) -> None:
    # The bits of the mutant are the seeds that kill their process.
    bits = "".join("1" if each else "0" for each in crash)
    seeds = range(first, first + len(crash))
    found = rows(isolation, job(f"{first}:{bits}"), seeds, by_bits)
    crashed = [any(each["invariant"] == "crash" for each in row["violations"]) for row in found]
    assert crashed == crash


def by_bits(suite: Any, seed: Any, options: Any) -> Any:
    first, _, bits = options.mutant.partition(":")
    if bits[seed - int(first)] == "1":
        os.abort()
    return made_up_trial(suite, seed, options)


def thirsty(suite: Any, seed: Any, options: Any) -> Any:
    raise ZeroDivisionError("as it was")


def test_trials_know_when_the_time_of_their_sweep_is_over(isolation: Isolation) -> None:
    def runs(ends: float | None) -> list[int]:
        chunk = Chunk(4, SUITE.name, 0, 2)
        batch = isolation.run(SUITE, chunk, job(), trial=one_run_a_second_left, ends=ends)
        found: list[int] = batch["runs"].to_pylist()
        return found

    assert runs(time.monotonic() - 1) == [0, 0]
    assert all(0 < left <= 5_000 for left in runs(time.monotonic() + 5_000))
    assert runs(None) == [1_000_000] * 2


def test_what_a_trial_raises_is_raised(isolation: Isolation) -> None:
    with pytest.raises(ZeroDivisionError, match="as it was"):
        rows(isolation, job(), range(3), thirsty)
    other = dataclasses.replace(job(), build_id="another")
    with pytest.raises(BuildMismatchError, match="build another"):
        rows(isolation, other, range(3), made_up_trial)
    assert len(rows(isolation, job(), range(3), made_up_trial)) == 3, "and the next chunk runs"


def test_a_supervisor_that_was_killed_is_replaced_once() -> None:
    result = Isolation()
    try:
        result.start()
        supervisor = psutil.Process(result._process.pid)  # type: ignore[union-attr]
        supervisor.kill()
        assert len(rows(result, job(), range(3), made_up_trial)) == 3
        result._closed = True
        psutil.Process(result._process.pid).kill()  # type: ignore[union-attr]
        with pytest.raises(SupervisorLostError):
            rows(result, job(), range(3), made_up_trial)
    finally:
        result.close()


def test_the_supervisor_of_a_process_with_threads_is_no_fork() -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    result = Isolation(forks=True)
    try:
        assert len(rows(result, job(), range(3), made_up_trial)) == 3
        supervisor = psutil.Process(result._process.pid)  # type: ignore[union-attr]
        assert supervisor.cmdline() != psutil.Process().cmdline()
    finally:
        over.set()
        other.join()
        result.close()


CLIENT = """
from pulsar_ml.campaign.trial.isolation import Isolation
from pulsar_ml.campaign.plan.plan import Chunk
from tests.campaign.rows import SUITE
from tests.campaign.test_isolation import job, reports_its_process
Isolation().run(SUITE, Chunk(0, SUITE.name, 0, 1), job(), trial=reports_its_process)
"""


def reports_its_process(suite: Any, seed: Any, options: Any) -> None:
    supervisor = psutil.Process().parent()
    assert supervisor is not None
    with open(f"/proc/{supervisor.ppid()}/fd/1", "w") as output:
        print(os.getppid(), os.getpid(), file=output)
    signal.pause()


def test_the_end_of_a_process_is_that_of_its_supervisor_and_its_trial() -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    processes = [psutil.Process(int(word)) for word in client.stdout.readline().split()]
    assert len(processes) == 2 and all(process.is_running() for process in processes)
    client.kill()
    client.communicate()
    assert psutil.wait_procs(processes, timeout=600)[1] == []

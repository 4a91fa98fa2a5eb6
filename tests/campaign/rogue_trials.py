"""Trials that destroy their process at one seed; a supervisor imports them by name."""

from __future__ import annotations

import faulthandler
import mmap
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, TrialResult
from pulsar_ml.campaign.turns import left_ns
from tests.campaign.rows import made_up_trial

SEED = 17


def at_the_seed(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Destroy the process at ``SEED`` in the way that ``options.mutant`` names."""
    if seed == SEED:
        DEEDS[str(options.mutant)]()
    return made_up_trial(suite, seed, options)


def always(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """End the process at every seed."""
    os._exit(seed % 100)


def one_run_a_second_left(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Claim as many runs as seconds are left, at most a million."""
    seconds = min(left_ns() // 1_000_000_000, 1_000_000)
    return replace(made_up_trial(suite, seed, options), runs=seconds)


def at_the_first_try(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Abort at ``SEED`` once; the file ``options.mutant`` remembers that it happened."""
    if seed == SEED and options.mutant and not os.path.exists(options.mutant):
        Path(options.mutant).touch()
        os.abort()
    return made_up_trial(suite, seed, options)


def says_its_last() -> None:
    for number in range(2000):
        print(f"line {number}", file=sys.stderr)
    sys.stderr.flush()
    os.abort()


def eats_memory() -> None:
    """Allocate a little more than the limit allows; the watchdog may look late."""
    eaten = bytearray(b"x" * (400 << 20))
    while eaten:
        signal.pause()


def reserves_address_space() -> None:
    reserved = []
    while True:
        reserved.append(mmap.mmap(-1, 1 << 30))


def waits_for_ever() -> None:
    while True:
        signal.pause()


def computes_for_ever() -> None:
    while True:
        pass


def writes_everywhere() -> None:
    """Write to every descriptor, as code does that uses one after closing it; then go on."""
    for descriptor in range(3, 256):
        try:
            os.write(descriptor, b"garbage" * 100)
        except OSError:
            continue


def closes_everything() -> None:
    os.closerange(0, 256)


def leaves_processes() -> None:
    """Leave a child and an orphan in a session of its own, which wait for ever."""
    for orphan in (False, True):
        child = os.fork()
        if child == 0:
            if orphan:
                os.setsid()
                if os.fork():
                    os._exit(0)
            waits_for_ever()
        if orphan:
            os.waitpid(child, 0)


def leaves_processes_and_aborts() -> None:
    leaves_processes()
    os.abort()


def forks_without_end() -> None:
    """Fork again and again, in each process: 256 processes if nobody ends them."""
    for _ in range(8):
        os.fork()
    waits_for_ever()


def kills_its_group() -> None:
    os.kill(0, signal.SIGKILL)


def kills_its_supervisor() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    waits_for_ever()


DEEDS = {
    "segmentation fault": faulthandler._sigsegv,  # type: ignore[attr-defined]
    "abort": os.abort,
    "stack overflow": faulthandler._stack_overflow,  # type: ignore[attr-defined]
    "exit": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "last words": says_its_last,
    "waits": waits_for_ever,
    "computes": computes_for_ever,
    "memory": eats_memory,
    "address space": reserves_address_space,
    "writes everywhere": writes_everywhere,
    "closes everything": closes_everything,
    "leaves processes": leaves_processes,
    "leaves processes and aborts": leaves_processes_and_aborts,
    "forks without end": forks_without_end,
    "kills its group": kills_its_group,
    "kills its supervisor": kills_its_supervisor,
}

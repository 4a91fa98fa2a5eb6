"""Trials that destroy their process at one seed; a supervisor imports them by name."""

from __future__ import annotations

import faulthandler
import mmap
import os
import signal
import sys
from pathlib import Path

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, TrialResult
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
}

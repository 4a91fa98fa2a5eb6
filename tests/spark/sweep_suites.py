"""Suites over the toy subjects for sweeps.

The module is also a native module, with a subject that kills its process, one that waits at a gate,
and one that is hostile to whatever runs beside it.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.campaign.trial.trial import load_native

TOYS = "SWEEP_TOYS"  # the environment variable with the path of the compiled toys
PEACE = "SWEEP_PEACE"  # set: the hostile subject behaves
GATE = "SWEEP_GATE"  # the same of a gate's directory

# No small program has a call of so high a number, at which the toy "tattler" fails.
SMALL = ControlledSize(settings={"start": (90, 100)})
SUITES = {
    name: Suite(
        name=name,
        subject=name,
        summary=f"Drives the toy {name}.",
        threads=2,
        operations=operations,
        controlled=SMALL,
    )
    for name, operations in {"counter": 3000, "racy": 300, "tattler": 300, "deadly": 300}.items()
}
SUITES["hostile"] = Suite(
    name="hostile", subject="hostile", summary="Attacks.", threads=1, operations=10
)
SUITES["gated"] = Suite(name="gated", subject="gated", summary="Waits.", threads=1, operations=10)


class Deadly:
    """Looks like another subject until a trial creates an instance."""

    def __init__(self, like: object) -> None:
        self._like = like

    def __getattr__(self, name: str) -> object:
        if name == "create":
            os.write(2, b"about to crash\n")
            os.kill(os.getpid(), signal.SIGSEGV)
        return getattr(self._like, name)


class Gated:
    """A subject whose trials with numbers of the gate as their setting report and wait there.

    ``closed`` in the gate's directory has a named pipe for each number; ``arrived`` is another one.
    With a file ``once`` beside, only the first trial waits, and a copy of it does not.
    """

    def __init__(self, like: object) -> None:
        self._like = like

    def __getattr__(self, name: str) -> object:
        return getattr(self._like, name)

    def create(self, *, threads: int, settings: Mapping[str, int]) -> object:
        gate, number = Path(os.environ[GATE]), settings["start"]
        with suppress(FileNotFoundError):
            closed = gate / "closed" / str(number)
            if (gate / "once").exists():
                closed = closed.rename(gate / "taken")
            if closed.exists():
                # Open before it is known that this trial waits: the name may go then.
                waiting = os.open(closed, os.O_RDONLY | os.O_NONBLOCK)
                with (gate / "arrived").open("w") as arrived:
                    arrived.write(f"{number} {os.getpid()}\n")
                select.select([waiting], [], [])
                os.close(waiting)
        return self._like.create(threads=threads, settings=settings)  # type: ignore[attr-defined]


class Hostile:
    """A subject whose trials do one of ``DEEDS``, or nothing, by the number in their settings."""

    def __init__(self, like: object) -> None:
        self._like = like

    def __getattr__(self, name: str) -> object:
        return getattr(self._like, name)

    def create(self, *, threads: int, settings: Mapping[str, int]) -> object:
        if (deed := deed_of(settings["start"])) is not None and PEACE not in os.environ:
            DEEDS[deed]()
        return self._like.create(threads=threads, settings=settings)  # type: ignore[attr-defined]


def deed_of(number: int) -> str | None:
    """The deed of a trial; None for a trial that behaves."""
    names = [name for deed in DEEDS for name in (deed, None)]
    return names[number % len(names)]


def writes_everywhere() -> None:
    for descriptor in range(3, 256):
        with suppress(OSError):
            os.write(descriptor, b"garbage" * 100)


def leaves_processes() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            waits()
        os._exit(0)


def forks_without_end() -> None:
    for _ in range(8):
        os.fork()
    waits()


def kills_its_supervisor() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    waits()


def waits() -> None:
    while True:
        signal.pause()


DEEDS: dict[str, Callable[[], object]] = {
    "writes everywhere": writes_everywhere,
    "leaves processes": leaves_processes,
    "forks without end": forks_without_end,
    "kills its group": lambda: os.kill(0, signal.SIGKILL),
    "kills its supervisor": kills_its_supervisor,
    "exits": lambda: os._exit(0),
    "closes everything": lambda: os.closerange(0, 256),
}


if path := os.environ.get(TOYS):
    _toys = load_native(path)
    BUILD_ID = _toys.BUILD_ID
    SUBJECTS = {
        **_toys.SUBJECTS,
        "deadly": Deadly(_toys.SUBJECTS["counter"]),
        "gated": Gated(_toys.SUBJECTS["counter"]),
        "hostile": Hostile(_toys.SUBJECTS["counter"]),
    }

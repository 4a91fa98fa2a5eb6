"""Suites over the toy subjects for sweeps.

The module is also a native module, with a subject that kills its process and one that waits at a
gate.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import load_native

TOYS = "SWEEP_TOYS"  # the environment variable with the path of the compiled toys
GATE = "SWEEP_GATE"  # the same of a gate's directory

SUITES = {
    name: Suite(
        name=name, subject=name, summary=f"Drives the toy {name}.", threads=2, operations=operations
    )
    for name, operations in {"counter": 3000, "racy": 300, "tattler": 300, "deadly": 300}.items()
}
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
    """A subject whose trial with the gate's number as its setting reports itself and waits there.

    ``closed`` in the gate's directory has the number; ``arrived`` and ``go`` are named pipes. With
    a file ``once`` beside, only the first such trial waits, and a copy of it does not.
    """

    def __init__(self, like: object) -> None:
        self._like = like

    def __getattr__(self, name: str) -> object:
        return getattr(self._like, name)

    def waits(self, closed: Path, number: int) -> bool:
        try:
            if int(closed.read_text()) != number:
                return False
            if closed.with_name("once").exists():
                closed.rename(closed.with_name("taken"))
        except FileNotFoundError:
            return False
        return True

    def create(self, *, threads: int, settings: Mapping[str, int]) -> object:
        closed = Path(os.environ[GATE], "closed")
        if self.waits(closed, settings["start"]):
            with closed.with_name("arrived").open("w") as arrived:
                arrived.write(f"{os.getpid()}\n")
            closed.with_name("go").read_bytes()
        return self._like.create(threads=threads, settings=settings)  # type: ignore[attr-defined]


if path := os.environ.get(TOYS):
    _toys = load_native(path)
    BUILD_ID = _toys.BUILD_ID
    SUBJECTS = {
        **_toys.SUBJECTS,
        "deadly": Deadly(_toys.SUBJECTS["counter"]),
        "gated": Gated(_toys.SUBJECTS["counter"]),
    }

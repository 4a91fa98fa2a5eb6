"""Suites over the toy subjects for sweeps, and a native module in which one subject kills its process."""

from __future__ import annotations

import os
import signal

from pulsar_ml.campaign.suite import Suite
from pulsar_ml.campaign.trial import load_native

TOYS = "SWEEP_TOYS"  # the environment variable with the path of the compiled toys

SUITES = {
    name: Suite(name=name, subject=name, summary=f"Drives the toy {name}.", threads=2, operations=operations)
    for name, operations in {"counter": 3000, "racy": 300, "tattler": 300, "deadly": 300}.items()
}


class Deadly:
    """Looks like another subject until a trial creates an instance."""

    def __init__(self, like: object) -> None:
        self._like = like

    def __getattr__(self, name: str) -> object:
        if name == "create":
            os.kill(os.getpid(), signal.SIGSEGV)
        return getattr(self._like, name)


if path := os.environ.get(TOYS):
    _toys = load_native(path)
    BUILD_ID = _toys.BUILD_ID
    SUBJECTS = {**_toys.SUBJECTS, "deadly": Deadly(_toys.SUBJECTS["counter"])}

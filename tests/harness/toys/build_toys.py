"""Compiles the toy subjects once per state of their sources; test processes share the result."""

from __future__ import annotations

import fcntl
import hashlib
from pathlib import Path

from pulsar_ml.harness.building.build import build_extension
from tests import ROOT


def toys_path(*, checked: bool = False, name: str = "toys") -> Path:
    """The shared object of the toys, compiled now unless that was done before; ``checked`` for the
    engine.

    ``name`` is the file: ``"toys"`` or ``"oracles"``.
    """
    folder = ROOT / "build" / (f"checked_{name}" if checked else name) / contract_digest()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_extension(
            Path(__file__).with_name(f"{name}.pyx"),
            into=folder,
            macros={"PML_FAULTS": "1"},
            flags=["-O1", "-std=gnu11", "-Wno-unused-function"],
            checked=checked,
        )


def contract_digest() -> str:
    """Changes with what the toys include, which the builder does not look at."""
    digest = hashlib.sha256()
    package = ROOT / "pulsar_ml"
    for path in [
        *sorted(package.glob("sync/*.[hp]*")),
        *sorted(package.glob("harness/subject.h")),
        *sorted(package.glob("harness/subjects/subject.p*")),
    ]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]

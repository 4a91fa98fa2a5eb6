"""Compiles the programs of this folder for the engine, once per state of their sources."""

from __future__ import annotations

import fcntl
import hashlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT


@cache
def programs() -> ModuleType:
    digest = hashlib.sha256()
    here = Path(__file__).parent
    shared = [ROOT / "pulsar_ml/harness/building/checked.py", ROOT / "pulsar_ml/sync/sync.h"]
    for path in [*sorted(here.glob("*.h")), *sorted(here.glob("*.pyx")), *shared]:
        digest.update(path.read_bytes())
    folder = ROOT / "build" / "programs" / digest.hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = build_extension(
            here / "programs.pyx",
            into=folder,
            checked=True,
            flags=["-std=gnu11", "-Wno-unused"],
            macros={"PML_BUILD_ID": '"programs"'},
        )
    return load_checked(path)


def program_of(name: str) -> Program:
    """The one program of subject ``name``: each thread runs its part once."""
    module = programs()
    return Program.generate(
        module.SUBJECTS[name], 0, threads=module.THREADS[name], operations=1, noise=False
    )


def explorer(name: str, **options: Any) -> Explorer:
    return Explorer(programs().SUBJECTS[name], program_of(name), **options)

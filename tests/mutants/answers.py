"""A small build: the mutants of ``catalogue/answers.py`` with the subjects they are about."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from pulsar_ml.harness.building.build import build_extension
from stress.mutants.build import COPIED, ROOT, write_mutated
from stress.mutants.catalogue import refcount
from stress.mutants.catalogue.answers import MUTANTS as ANSWERS

# And one that takes concurrency, for schedules.
RACY = next(mutant for mutant in refcount.MUTANTS if mutant.id == "M13")
MUTANTS = (*ANSWERS, RACY)
SUBJECTS = {mutant.suite for mutant in MUTANTS}


def built(*, checked: bool) -> Path:
    """The module with the mutants, for real threads or for the engine."""
    package = ROOT / "pulsar_ml"
    sources = sorted({path for pattern in COPIED for path in package.rglob(pattern)})
    digest = hashlib.sha256(repr(MUTANTS).encode())
    for path in sources:
        digest.update(path.read_bytes())
    tree = ROOT / "build" / "answers" / digest.hexdigest()[:12]
    native = tree / "pulsar_ml" / "operations" / "_native.pyx"
    if not (tree / "complete").exists():
        shutil.rmtree(tree, ignore_errors=True)
        write_mutated(package, sources, tree, MUTANTS)
        native.write_text(only(native.read_text()))
        (tree / "complete").touch()
    return build_extension(
        native,
        into=tree / "module",
        include=[tree],
        macros={
            "PML_FAULTS": "1",
            "PML_BUILD_ID": '"answers"',
            "PML_MUTANTS_HEADER": '"pulsar_ml/sync/mutants.h"',
        },
        flags=["-O1", "-std=gnu11"],
        checked=checked,
    )


def only(text: str) -> str:
    """The native module without the other subjects."""
    lines = []
    for line in text.splitlines():
        named = re.match(
            r"from pulsar_ml\.operations\.(\w+) cimport \w+_subject$", line
        ) or re.match(r"\s+add_subject\(subjects, (\w+)_subject\)", line)
        if named is None or named[1] in SUBJECTS:
            lines.append(line)
    return "\n".join(lines) + "\n"

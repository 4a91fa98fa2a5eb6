"""The native sources that a suite's subject is made of, so that a result is void only when they change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from stress.mutants.build import ROOT

COMMENT = re.compile(r"#.*")
PACKAGE = ROOT / "pulsar_ml"
NAMED = re.compile(
    r"^from pulsar_ml\.(?P<module>[\w.]+) cimport"
    r'|^cdef extern from "pulsar_ml/(?P<header>[\w./]+)"'
    r'|^#\s*include "(?:pulsar_ml/)?(?P<include>[\w./]+)"',
    re.MULTILINE,
)


def named_in(path: Path) -> Iterator[Path]:
    """The files that this one names, those of the system left out."""
    for match in NAMED.finditer(path.read_text()):
        if match["module"]:
            yield PACKAGE / f"{match['module'].replace('.', '/')}.pxd"
        else:
            below = match["header"] or match["include"]
            yield next(
                (at for at in (PACKAGE / below, path.parent / below) if at.exists()),
                PACKAGE / below,
            )


@cache
def reached(subject: str) -> tuple[Path, ...]:
    """All sources behind the subject's operations, by way of what they cimport and include."""
    found: set[Path] = set()
    ahead = [PACKAGE / "operations" / f"{subject}.pxd"]
    while ahead:
        path = ahead.pop()
        if path not in found and path.exists():
            found.add(path)
            ahead += named_in(path)
    return tuple(sorted(found))


@cache
def digest(subject: str) -> str:
    made = hashlib.sha256()
    for path in reached(subject):
        text = path.read_text()
        # Comments and the breaks of lines change nothing.
        made.update(
            "".join(COMMENT.sub("", text).split() if path.suffix == ".pxd" else text).encode()
        )
    return made.hexdigest()

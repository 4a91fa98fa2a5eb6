"""The file of a failure's hints: ``NAME.hints`` beside the record ``NAME.json``.

``pulsar-ml explain`` writes it, so that replays, reports and SARIF show hints without exploring
again. Its name does not end in ``.json``: ``failures/*.json`` stays a list of records. It is a JSON
object::

    {
      "kind": "pulsar_ml hints", "version": 1,
      "failure": "the SHA-256 of Failure.to_json()",
      "why": ["the store of ready at queue.h:130 is relaxed and ...", ...],
      "inevitable": "the failure became inevitable behind step 12, ...",
      "hints": [{"changes": ["release for the store at push queue.h:130 (relaxed now)"],
                 "places": ["push queue.h:130"], "executions": 17, "complete": true}, ...],
      "tried": 5,
      "fails_at": 3,
      "why_none": ""
    }

``places`` are function and file:line of the code that a hint changes. ``fails_at`` is the first
execution of the unchanged program that failed, 0 for none; ``why_none`` says why there is no hint.
A file of another failure, or of the same one before it was shrunk, is not read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pulsar_ml.errors import naming
from pulsar_ml.harness.causes.hints import Hints
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import build, read_object

KIND = "pulsar_ml hints"
VERSION = 1
SUFFIX = ".hints"


@dataclass(frozen=True, slots=True)
class KeptHint:
    """One change, see :class:`pulsar_ml.harness.causes.hints.Hint`."""

    changes: tuple[str, ...]
    places: tuple[str, ...]
    executions: int
    complete: bool


@dataclass(frozen=True, slots=True)
class KeptHints:
    """The content of the file, see above."""

    failure: str
    why: tuple[str, ...]
    inevitable: str
    hints: tuple[KeptHint, ...]
    tried: int
    fails_at: int
    why_none: str


def hints_path(record: Path) -> Path:
    """Return the path of the hints of the failure in ``record``."""
    return record.with_suffix(SUFFIX)


def digest(failure: Failure) -> str:
    return hashlib.sha256(failure.to_json().encode()).hexdigest()


def write_hints(
    record: Path, failure: Failure, found: Hints, why: tuple[str, ...], inevitable: str
) -> Path:
    """Write the hints of ``failure`` beside its record, and return their path."""
    kept = KeptHints(
        failure=digest(failure),
        why=why,
        inevitable=inevitable,
        hints=tuple(
            KeptHint(tuple(map(str, hint.changes)), hint.places, hint.executions, hint.complete)
            for hint in found.found
        ),
        tried=found.tried,
        fails_at=found.fails_at,
        why_none=found.why,
    )
    path = hints_path(record)
    content = {"kind": KIND, "version": VERSION, **asdict(kept)}
    with naming(path):
        path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def read_hints(record: Path, failure: Failure) -> KeptHints | None:
    """Return the hints of ``failure``, the content of ``record``; None if it has none.

    Raises BadRecordError for a damaged file.
    """
    path = hints_path(record)
    if not path.is_file():
        return None
    kept = read_file(path)
    return kept if kept.failure == digest(failure) else None


def read_file(path: Path) -> KeptHints:
    """Return the content of a file of hints, of whichever failure."""
    what = f"the hints {path}"
    content = read_object(bounded_text(path, "the hints"), what, kind=KIND, versions=(VERSION,))
    return build(KeptHints, content, what)

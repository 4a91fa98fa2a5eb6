"""The shrunk failures of a run, beside its records, which do not change:

    shrunk/SIGNATURE.json        the shrunk failure, if any, for ``pulsar-ml replay``
    shrunk/SIGNATURE.state.json  the record, the effort and the outcome of shrinking

The state is written last, so that the failure it names exists. It names the record by a digest:
when a resumed run finds another record for that signature, the state no longer counts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import build, check_keys, mismatch, read_object

STATE_VERSION = 1

SMALLER = "smaller"
AS_SMALL = "as small"  # no smaller failure was found
FOUND = "found"  # the engine reproduced a failure of real threads
NOT_FOUND = "not found"
NOTHING = "nothing to shrink"
CRASHED = "lost"  # its process crashed or hung
REFUSED = (
    "refused"  # not tried or not reproduced: another build, a missing module, a damaged record
)
OUTCOMES = (SMALLER, AS_SMALL, FOUND, NOT_FOUND, NOTHING, CRASHED, REFUSED)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a failure; ``decisions`` counts switches, stale reads and other choices."""

    threads: int
    operations: int
    decisions: int
    steps: int

    @property
    def order(self) -> tuple[int, int, int]:
        return self.operations, self.decisions, self.steps


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The result of shrinking. ``record`` is the smaller failure or ""; sizes where known."""

    outcome: str
    message: str = ""
    record: str = ""
    before: Size | None = None
    after: Size | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Shrunk:
        """Return the result that ``to_json`` wrote; BadRecordError for anything else."""
        return shrunk_of(read_object(text, "the result"), "the result")


@dataclass(frozen=True, slots=True)
class ShrinkState:
    """The effort so far: at most ``executions``, on the record with the digest ``of``."""

    of: str
    executions: int
    shrunk: Shrunk

    def covers(self, record: str, executions: int) -> bool:
        """Return True when so many executions on this record were tried before."""
        if self.of != digest_of(record) or self.shrunk.outcome == REFUSED:
            return False
        return self.executions >= executions or self.shrunk.outcome == NOTHING


def digest_of(record: str) -> str:
    """Return the digest of a record's text without empty lines at its end."""
    return hashlib.sha256(record.rstrip("\n").encode()).hexdigest()


def record_path(directory: Path, signature: str) -> Path:
    """Return the path of a signature's shrunk failure."""
    return directory / "shrunk" / f"{signature}.json"


def state_path(directory: Path, signature: str) -> Path:
    return directory / "shrunk" / f"{signature}.state.json"


def state_text(state: ShrinkState) -> str:
    content = asdict(state.shrunk)
    del content["record"]  # the record has a file of its own
    data = {"version": STATE_VERSION, "of": state.of, "executions": state.executions, **content}
    return json.dumps(data, indent=2) + "\n"


def read_state(directory: Path, signature: str) -> ShrinkState | None:
    """Read the state of shrinking of a signature with its shrunk failure; None for none.

    BadRecordError for a damaged state or one of a newer version.
    """
    path = state_path(directory, signature)
    if not path.exists():
        return None
    text = bounded_text(path, "the state", most=1 << 20)
    content = read_object(text, str(path), versions=(STATE_VERSION,))
    own = check_keys(content, {"of": str, "executions": int}, str(path), others=True)
    shrunk = shrunk_of(
        {name: value for name, value in content.items() if name not in own} | {"record": ""},
        str(path),
    )
    if shrunk.outcome in (SMALLER, FOUND):
        text = bounded_text(record_path(directory, signature), "the smaller failure")
        shrunk = Shrunk(
            shrunk.outcome, shrunk.message, text.rstrip("\n"), shrunk.before, shrunk.after
        )
    return ShrinkState(**own, shrunk=shrunk)


def shrunk_of(content: object, what: str) -> Shrunk:
    shrunk = build(Shrunk, content, what, optional=frozenset())
    if shrunk.outcome not in OUTCOMES:
        raise mismatch(what, "outcome", shrunk.outcome, f"one of {', '.join(OUTCOMES)}")
    return shrunk

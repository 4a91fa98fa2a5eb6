"""Failures that are already known, so that a command fails only for new ones.

A file of known failures is TOML::

    [[known]]
    signature = "5f0c1d2e3a4b"
    reason = "the tail is not published; its owner works on it"
    until = 2027-03-01

An entry holds up to its day in UTC, that day included. After it the failure counts as new again.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.testing.sarif import fingerprint
from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import check_keys

MOST_BYTES = 4 << 20
MOST_NAMED = 10  # signatures in a sentence
SIGNATURE = re.compile(r"[0-9a-f]{12}")
NEW, KNOWN, EXPIRED = "new", "known", "expired"


@dataclass(frozen=True, slots=True)
class Entry:
    """A known failure. Without ``until`` it does not expire: it is of an earlier run or record."""

    signature: str
    source: str
    reason: str = ""
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The known failures of a command, as of one day."""

    today: date
    entries: Mapping[str, Entry] = field(default_factory=dict)

    def status(self, signature: str) -> str:
        """NEW, KNOWN or EXPIRED."""
        entry = self.entries.get(signature)
        if entry is None:
            return NEW
        return KNOWN if entry.until is None or self.today <= entry.until else EXPIRED

    def is_known(self, signature: str) -> bool:
        return self.status(signature) == KNOWN

    def note(self, signature: str) -> str:
        """Describe the entry of a signature; "" when it has none."""
        entry = self.entries.get(signature)
        if entry is None:
            return ""
        if entry.until is None:
            return f"known from {entry.source}"
        if self.today > entry.until:
            return f"new, for its entry in {entry.source} expired on {entry.until}: {entry.reason}"
        return f"known until {entry.until}: {entry.reason}"

    def sentence(self, found: Collection[str]) -> str:
        """Count and name the found signatures by their status."""
        of = {status: [] for status in (NEW, EXPIRED, KNOWN)}  # type: dict[str, list[str]]
        for signature in sorted(set(found)):
            of[self.status(signature)].append(signature)
        parts = [f"{len(of[NEW])} new{names(of[NEW])}"]
        if of[EXPIRED]:
            days = {name: str(self.entries[name].until) for name in of[EXPIRED]}
            shown = names([f"{name} on {day}" for name, day in days.items()])
            parts.append(f"{len(of[EXPIRED])} expired, so new{shown}")
        parts.append(f"{len(of[KNOWN])} known{names(of[KNOWN])}")
        return f"baseline: {', '.join(parts)}"


def baseline_data(found: Collection[str], baseline: Baseline | None) -> dict[str, Any]:
    """The status of the found signatures for JSON; empty without a baseline."""
    if baseline is None:
        return {}
    return {
        "baseline": [
            {
                "signature": signature,
                "status": baseline.status(signature),
                "note": baseline.note(signature),
            }
            for signature in sorted(set(found))
        ]
    }


def names(signatures: list[str]) -> str:
    more = f" and {len(signatures) - MOST_NAMED} more" if len(signatures) > MOST_NAMED else ""
    return f" ({', '.join(signatures[:MOST_NAMED])}{more})" if signatures else ""


def today() -> date:
    """Today's date in UTC."""
    return datetime.now(UTC).date()


def short_signature(failure: Failure) -> str:
    """The signature of a test's failure, which its record has in its name."""
    return fingerprint(failure)[:12]


def is_known_by(baseline: Baseline | None) -> Callable[[Failure], bool] | None:
    """A function that says of a test's failure whether it is known; None without a baseline."""
    if baseline is None:
        return None
    return lambda failure: baseline.is_known(short_signature(failure))


def read_known(path: Path) -> list[Entry]:
    """The entries of a file of known failures. BadRecordError for a wrong one."""
    text = bounded_text(path, "the file of known failures", most=MOST_BYTES)
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRecordError(f"{path} is no TOML file: {str(error).splitlines()[0]:.200}") from None
    known = check_keys(table, {"known": list[dict[str, Any]]}, str(path))["known"]
    entries = []
    for number, one in enumerate(known, 1):
        what = f"{path}, entry {number} of [[known]]"
        content = check_keys(
            one, {"signature": str, "reason": str, "until": Any}, what, optional={"until"}
        )
        if not SIGNATURE.fullmatch(content["signature"]):
            raise BadRecordError(
                f"{what}: signature is {content['signature']!r:.60}; it should be 12 hexadecimal "
                "digits, as a report shows them"
            )
        until = content.get("until")
        if type(until) is not date:
            found = "missing" if until is None else f"{str(until)!r:.60}"
            raise BadRecordError(
                f"{what}: until is {found}; it should be a date without quotes, as 2027-03-01"
            )
        if not content["reason"].strip():
            raise BadRecordError(f"{what}: reason is empty; say why the failure may stay")
        entries.append(Entry(source=path.name, **content))
    return entries


def records_below(
    folder: Path, signature_of: Callable[[Failure], str] = short_signature
) -> list[Entry]:
    """The failures of tests whose records lie in a folder, such as .pulsar_ml/failures."""
    entries = []
    for path in sorted(folder.glob("*.json")):
        try:
            failure = Failure.from_text(bounded_text(path, "the record"))
        except BadRecordError as error:
            raise BadRecordError(f"{path}: {error}") from None
        entries.append(Entry(signature_of(failure), f"the record {path.name}"))
    return entries


def read_baseline(
    paths: Iterable[Path],
    day: date,
    read_folder: Callable[[Path], list[Entry]] = records_below,
) -> Baseline:
    """The baseline of files of known failures, and of folders.

    An entry of a file counts more than a folder's, because it can expire. Of two entries in files
    the one that expires first counts. UsageError for a path that is neither.
    """
    entries: dict[str, Entry] = {}
    for path in paths:
        if os.path.isdir(path):
            found = read_folder(path)
        elif os.path.exists(path):
            found = read_known(path)
        else:
            raise UsageError(f"the baseline {path} does not exist; name a TOML file or a folder")
        for entry in found:
            other = entries.get(entry.signature)
            if other is None or (entry.until or date.max) < (other.until or date.max):
                entries[entry.signature] = entry
    return Baseline(day, entries)

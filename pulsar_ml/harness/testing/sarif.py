"""Writes failures as SARIF 2.1.0, the format in which code hosts and editors import findings."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pulsar_ml
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.search.failure import Failure

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_FOLDERS = 20_000
PLACE = re.compile(r"^(?P<function>.*) (?P<file>[^ :]+):(?P<line>\d+)$")


def log(results: Sequence[Mapping[str, Any]], root: Path, command: str) -> dict[str, Any]:
    """Return a SARIF log of these results, with file names relative to ``root``.

    The ``command`` is the category under which code hosts keep the results apart.
    """
    places = [
        place["physicalLocation"]["artifactLocation"]
        for result in results
        for place in (*result.get("locations", ()), *result.get("relatedLocations", ()))
    ]
    found = files_below(root, {place["uri"] for place in places})
    for place in places:
        place["uri"] = quote(found.get(place["uri"], place["uri"]))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "pulsar_ml",
                        "version": pulsar_ml.__version__,
                        "rules": [
                            {"id": rule, "shortDescription": {"text": rule}}
                            for rule in sorted({result["ruleId"] for result in results})
                        ],
                    }
                },
                "automationDetails": {"id": f"pulsar_ml-{command}/"},
                "results": list(results),
            }
        ],
    }


def files_below(root: Path, places: Collection[str]) -> dict[str, str]:
    """Return the file below ``root`` for each of ``places``: a file name with a few folders.

    Places that fit no file, or several, are left out. At most MOST_FOLDERS folders are searched.
    """
    if not places:
        return {}
    wanted = {place.rpartition("/")[2] for place in places}
    named: dict[str, list[Path]] = {}
    for folder, folders, names in itertools.islice(os.walk(root), MOST_FOLDERS):
        folders[:] = [
            name for name in folders if not name.startswith((".", "__")) and name != "build"
        ]
        for name in wanted.intersection(names):
            named.setdefault(name, []).append(Path(folder, name))

    def alike(path: Path, place: str) -> int:
        pairs = zip(reversed(path.parts), reversed(place.split("/")), strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    found = {}
    for place in places:
        best = sorted(
            (alike(path, place), path) for path in named.get(place.rpartition("/")[2], ())
        )[-2:]
        if len(best) == 1 or (best and best[0][0] < best[1][0]):
            found[place] = best[-1][1].relative_to(root).as_posix()
    return found


def rule_of(failure: Failure) -> str:
    """Return the id of the broken invariant, or the kind of the failure."""
    return failure.rule or failure.kind


def fingerprint(failure: Failure) -> str:
    """Return a hash that is equal for failures with equal signatures."""
    text = "\n".join((failure.subject, *failure.signature))
    # A path may have bytes that are no text.
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:32]


def result_of(failure: Failure) -> dict[str, Any]:
    """Return a failure as a result of SARIF."""
    places = [place for text in failure.where if (place := location(text)) is not None]
    result: dict[str, Any] = {
        "ruleId": rule_of(failure),
        "level": "error",
        "message": {"text": f"{failure.subject}: {failure.kind}: {failure.message}"},
        "partialFingerprints": {"pulsarMlSignature/v1": fingerprint(failure)},
        "properties": {"record": failure.short(), "mode": failure.mode},
    }
    if places:
        result["locations"] = places[:1]
        result["relatedLocations"] = [
            {**place, "id": number} for number, place in enumerate(places[1:], 1)
        ]
    return result


def standing(note: str, *, against: bool) -> dict[str, Any]:
    """The properties of a result ``against`` a baseline, whose ``note`` a known failure has."""
    state = {"baselineState": "unchanged" if note else "new"} if against else {}
    if not note:
        return state
    return {**state, "suppressions": [{"kind": "external", "justification": note}]}


def result_of_test(
    failure: Failure,
    test: str,
    *,
    note: str = "",
    record: Path | None = None,
    against: bool = False,
) -> dict[str, Any]:
    """Return the failure of a test at ``test``, a text as :func:`location` reads it.

    The test stands for a failure without a place in the code, as wrong answers. ``note`` is the
    baseline's, for a known failure; ``against`` says that there is a baseline. Hints beside the
    ``record`` follow the message.
    """
    result = result_of(failure)
    at_test = location(test)
    if at_test is not None:
        result = {"locations": [at_test], **result}
    if record is not None and (changes := changes_beside(record, failure)):
        text = f"{result['message']['text']}. The failure is gone with: {' or '.join(changes)}"
        result = {**result, "message": {"text": text}}
    return {**result, **standing(note, against=against)}


def changes_beside(record: Path, failure: Failure) -> list[str]:
    """The changes that the hints beside a record name, see ``pulsar-ml explain``."""
    from pulsar_ml.harness.causes.hints_file import read_hints  # slow: imports the engine

    try:
        kept = read_hints(record, failure)
    except (BadRecordError, UsageError):  # the failure is reported without them
        return []
    return ["; and ".join(hint.changes) for hint in kept.hints] if kept else []


def location(text: str) -> dict[str, Any] | None:
    """Return the location of a text ``function file:line``; None for a text without a line."""
    match = PLACE.match(text)
    if match is None:
        return None
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": match["file"]},
            "region": {"startLine": max(1, int(match["line"]))},
        },
        "logicalLocations": [{"name": match["function"] or "?"}],
    }

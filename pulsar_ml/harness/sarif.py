"""Failures as SARIF 2.1.0, the form in which code hosts and editors take findings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pulsar_ml.harness.failure import Failure

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
PLACE = re.compile(r"^(?P<function>.*) (?P<file>[^ :]+):(?P<line>\d+)$")


def sarif(failures: Iterable[Failure]) -> dict[str, Any]:
    """A SARIF log with one result for each failure."""
    return log([result_of(failure) for failure in failures])


def log(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A SARIF log with these results."""
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "pulsar_ml",
                        "version": installed_version(),
                        "rules": [
                            {"id": rule, "shortDescription": {"text": rule}}
                            for rule in sorted({result["ruleId"] for result in results})
                        ],
                    }
                },
                "results": list(results),
            }
        ],
    }


def installed_version() -> str:
    try:
        return version("pulsar_ml")
    except PackageNotFoundError:  # a checkout that is on the path and not installed
        return "0"


def rule_of(failure: Failure) -> str:
    """The broken invariant, or what the engine calls the failure."""
    return failure.rule or failure.kind


def fingerprint(failure: Failure) -> str:
    """Equal for failures with one signature."""
    return hashlib.sha256("\n".join((failure.subject, *failure.signature)).encode()).hexdigest()[:32]


def result_of(failure: Failure) -> dict[str, Any]:
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
        result["relatedLocations"] = [{**place, "id": number} for number, place in enumerate(places[1:], 1)]
    return result


def location(text: str) -> dict[str, Any] | None:
    """A place of the form ``function file:line``; None for what has no line."""
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

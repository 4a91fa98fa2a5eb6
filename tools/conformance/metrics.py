"""The metrics that the released jars register, beside those that are exported here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulsar_ml.metrics.names import FAMILIES, INSTRUMENTS
from tools.conformance.java import Release

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "conformance" / "metrics.json"
PAGE = ROOT / "docs" / "metrics.md"
BEGIN = "<!-- Written by `python -m tools.conformance --metrics --write`. -->\n"
END = "<!-- End of the list. -->"
POOL = "pulsar.broker.managed_ledger.cache.pool.allocation"
INFLIGHT = "pulsar.broker.managed_ledger.inflight.read"
KINDS = {"counterBuilder": "counter", "upDownCounterBuilder": "up-down counter"}

# The reason of each difference by the metric's name: who is right, or why it is not exported.
LISTED = {
    f"{POOL}.active.count": "not exported: there are no arenas, entries come from pools of objects",
    f"{POOL}.size": "not exported: there are no arenas; `pinned.size` is what entries keep",
    f"{INFLIGHT}.limit": "an up-down counter here: a limit is a level, not a count of events",
    f"{INFLIGHT}.usage": "an up-down counter here: used and free bytes fall",
    f"{INFLIGHT}.acquire.count": "not exported: new in 5.0.1; the limiter does not count events",
    f"{INFLIGHT}.release.count": "not exported: new in 5.0.1; the limiter does not count events",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of an exporter; ``attributes`` are "key=value" texts or label names, sorted.

    They are empty when the release did not record a value.
    """

    exporter: str
    name: str
    kind: str
    unit: str
    attributes: tuple[str, ...]


def parsed(line: str) -> Metric:
    """A line of Metrics.java."""
    exporter, name, kind, *rest = line.split(" ", 4)
    if exporter == "prometheus":
        return Metric(exporter, name, kind.lower(), "", tuple(re.findall(r"\w+", " ".join(rest))))
    unit, attributes = (*rest, "")[:2]
    found = re.findall(r"([\w.]+)=([\w.-]+)", attributes)
    return Metric(exporter, name, KINDS[kind], unit, tuple(sorted(f"{k}={v}" for k, v in found)))


def ours() -> dict[str, Metric]:
    """The metrics here by name, those that a jar may have."""
    found = {}
    for each in INSTRUMENTS:
        values = sorted(f"{each.attribute}={value}" for value in each.terms if value)
        found[each.name] = Metric("otel", each.name, each.kind, each.unit, tuple(values))
    for family in FAMILIES:
        kind = "counter" if family.kind == "counter" else "gauge"
        found[family.name] = Metric("prometheus", family.name, kind, "", ())
    return found


def difference(theirs: Metric, here: Metric | None) -> str:
    """How a metric differs from the one here; "" when it does not."""
    if here is None:
        return "missing"
    for name in ("exporter", "kind", "unit"):
        one, other = getattr(theirs, name), getattr(here, name)
        if one != other:
            return f"{name}: {one} there, {other} here"
    if theirs.attributes and theirs.attributes != here.attributes:
        return f"attributes: {theirs.attributes} there, {here.attributes} here"
    return ""


def compared(lines: Iterable[str]) -> tuple[int, dict[str, str]]:
    """The number of equal metrics, and the differences by name."""
    here = ours()
    metrics = [parsed(line) for line in lines]
    found = {each.name: difference(each, here.get(each.name)) for each in metrics}
    return sum(not text for text in found.values()), {n: t for n, t in found.items() if t}


def released(release: Release) -> list[str]:
    """The lines of Metrics.java under a release."""
    lines = release.output("org.apache.bookkeeper.mledger.impl.cache.Metrics").splitlines()
    return sorted(line for line in lines if line.startswith(("otel ", "prometheus ")))


def store(releases: Sequence[Release]) -> None:
    text = json.dumps({each.version: released(each) for each in releases}, indent=1)
    STORED.write_text(text + "\n")


def stored(path: Path = STORED) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(path.read_text())
    return found


def table(answers: dict[str, list[str]]) -> str:
    """The listed differences as Markdown, with the releases that have them."""
    rows: dict[tuple[str, str], list[str]] = {}
    for version, lines in answers.items():
        for name, text in compared(lines)[1].items():
            rows.setdefault((name, text), []).append(version)
    lines = ["| metric | difference | releases | reason |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{name}` | {text} | {', '.join(versions)} | {LISTED[name]} |"
        for (name, text), versions in sorted(rows.items())
    ]
    return "\n".join(lines) + "\n"


def page_with(answers: dict[str, list[str]], page: str) -> str:
    """The page with the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + table(answers) + "\n" + END + rest.partition(END)[2]

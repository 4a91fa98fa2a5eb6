"""``python -m tools.conformance``: this cache beside managed-ledger 4.2.4 and 5.0.1.

Exit codes: 0 no difference but listed ones, or no Java here; 1 a difference that is not listed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from pulsar_ml.campaign.trial.supervisor import fresh_large_blocks
from tools.conformance import metrics
from tools.conformance.compare import Difference, answers_of, differences, minimised
from tools.conformance.java import NoJava, Release, releases
from tools.conformance.traces import SUBJECTS, Trace, trace_of

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "conformance" / "stored.json"
BATCH = 200  # traces that one JVM runs


def parsed_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    parser.add_argument("--traces", type=int, default=400, help="of each subject")
    parser.add_argument("--operations", type=int, default=60, help="of each trace")
    parser.add_argument("--seed", type=int, default=0, help="of the first trace")
    parser.add_argument("--subject", choices=sorted(SUBJECTS), action="append")
    parser.add_argument("--findings", action="store_true", help="run Findings.java and print it")
    parser.add_argument("--store", action="store_true", help=f"write {STORED.relative_to(ROOT)}")
    parser.add_argument("--metrics", action="store_true", help="only the metrics")
    parser.add_argument("--write", action="store_true", help="with --metrics: docs/metrics.md, too")
    return parser.parse_args()


def compare(release: Release, subject: str, options: argparse.Namespace) -> bool:
    """Prints a line for a subject and its shortest differences; False for an unlisted one."""
    names: Counter[str] = Counter()
    shortest: dict[str, Difference] = {}
    seeds = range(options.seed, options.seed + options.traces)
    for at in range(0, len(seeds), BATCH):
        traces = [trace_of(subject, seed, options.operations) for seed in seeds[at : at + BATCH]]
        for found in differences(release.version, traces, release.answers):
            name = found.name or "not listed"
            names[name] += 1
            if name not in shortest or len(found.trace) < len(shortest[name].trace):
                shortest[name] = found
    shown = ", ".join(f"{name} in {count}" for name, count in sorted(names.items())) or "none"
    operations = options.traces * options.operations
    print(
        f"{release.version}  {subject:8}  {options.traces:>6} traces  {operations:>8} operations  "
        f"differences: {shown}",
        flush=True,
    )
    for found in shortest.values():
        print(minimised(found, release.answers).text(), flush=True)
    return "not listed" not in names


def compare_metrics(release: Release) -> bool:
    """Prints the differences of a release's metrics; False for an unlisted one."""
    equal, different = metrics.compared(metrics.released(release))
    listed = [name for name in different if name in metrics.LISTED]
    print(
        f"{release.version}  metrics   equal {equal}, listed differences {len(listed)}", flush=True
    )
    for name, text in different.items():
        if name not in metrics.LISTED:
            print(f"not listed: {name}: {text}", flush=True)
    return len(listed) == len(different)


def store(found: list[Release]) -> None:
    """Writes a few traces with the answers of each release, for a replay without Java."""
    traces: list[Trace] = [trace_of(name, seed, 40) for name in SUBJECTS for seed in range(8)]
    rows = [
        [release.version, trace, theirs]
        for release in found
        for trace, theirs in zip(traces, answers_of(traces, release.answers), strict=True)
    ]
    STORED.parent.mkdir(exist_ok=True)
    STORED.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    metrics.store(found)


def main() -> int:
    fresh_large_blocks()  # caches of thousands of traces would stay in pieces of the heap
    options = parsed_options()
    try:
        found = releases(ROOT / "build" / "conformance")
        if options.findings:
            for release in found:
                print(release.version, release.findings(), sep="\n", end="")
            return 0
        if options.store and not options.metrics:
            store(found)
            return 0
        if options.store:
            metrics.store(found)
        if options.write:
            page = metrics.page_with(metrics.stored(), metrics.PAGE.read_text())
            metrics.PAGE.write_text(page)
        same = [] if options.subject else [compare_metrics(release) for release in found]
        if options.metrics:
            return 0 if all(same) else 1
        subjects = options.subject or list(SUBJECTS)
        same += [compare(release, subject, options) for release in found for subject in subjects]
    except NoJava as missing:
        print(f"Conformance was not checked: {missing}.")
        return 0
    if not all(same):
        print("A difference is not listed: see docs/conformance.md.")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())

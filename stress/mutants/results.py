"""Results of the kill table as lines of JSON: what is known stays known, also after an interrupt.

A line says of which sources it is. A rerun makes only what is missing or of other sources; a line that was
cut off in the middle counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from stress.mutants.build import COPIED, ROOT
from stress.mutants.techniques import Case, Technique, Trial
from stress.registry import SUITES

Key = tuple[str, str, int]
# Of a mutant, for its results.
MATTERS = (
    *("file", "old", "new", "helper", "cimports"),
    *("within", "programs", "calls", "settings", "strategy", "executions"),
)


@cache
def core_digest() -> str:
    digest = hashlib.sha256()
    package = ROOT / "pulsar_ml"
    for path in sorted({path for pattern in COPIED for path in package.rglob(pattern)}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def source_of(technique: Technique, case: Case) -> str:
    """Twelve digits that change with everything that a trial's result depends on, other than the harness."""
    suite = SUITES[case.mutant.suite]
    model = suite.model if technique.name == "linear" else ""
    parts = (
        core_digest(),
        [getattr(case.mutant, name) for name in MATTERS],
        case.selected,
        (technique.name, technique.budget),
        (
            suite.name,
            dict(suite.mix),
            dict(suite.settings),
            suite.threads,
            suite.operations,
            suite.controlled,
        ),
        model,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


class Results:
    """The trials of the first so many seeds in a file of lines. One process writes it."""

    def __init__(self, path: Path, wanted: Iterable[tuple[Technique, Case]], *, seeds: int) -> None:
        self.path = path
        self.seeds = seeds
        self.sources = {(case.label, one.name): source_of(one, case) for one, case in wanted}
        self.trials: dict[Key, Trial] = {}
        self.read()

    def read(self) -> None:
        if not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            try:
                data = json.loads(line)
                source = data.pop("source")
                trial = Trial(**data)
            except (ValueError, KeyError, TypeError):
                continue  # cut off in the middle, or of another version
            wanted = self.sources.get((trial.case, trial.technique)) == source
            if wanted and trial.seed < self.seeds:
                self.trials[trial.case, trial.technique, trial.seed] = trial

    def add(self, trial: Trial) -> None:
        source = self.sources[trial.case, trial.technique]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        cut_off = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a") as file:
            file.write("\n" * cut_off + json.dumps({"source": source, **trial.to_data()}) + "\n")
        self.trials[trial.case, trial.technique, trial.seed] = trial

    def of(self, case: Case, technique: Technique) -> list[Trial]:
        found = [self.trials[key] for key in self.trials if key[:2] == (case.label, technique.name)]
        return sorted(found, key=lambda trial: trial.seed)

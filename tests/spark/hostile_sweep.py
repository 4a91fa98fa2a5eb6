"""Sweeps with hostile seeds, compared with a sweep in which the same seeds behave."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from pulsar_ml.campaign.store.store import read_trials, read_violations
from pulsar_ml.campaign.trial.engines import program_of
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native
from tests.campaign.rows import stable_rows
from tests.harness.toys.build_toys import toys_path
from tests.spark.sweep_suites import DEEDS, PEACE, SUITES, deed_of
from tests.spark.test_sweep import environment, sweep

ROW_OF = {"leaves processes": "processes", "forks without end": "processes"}


def deeds(seeds: range) -> list[str | None]:
    counter = load_native(str(toys_path())).SUBJECTS["counter"]
    numbers = (
        program_of(counter, SUITES["hostile"], seed, TrialOptions()).settings["start"]
        for seed in seeds
    )
    return [deed_of(number) for number in numbers]


def seeds_with_every_deed() -> range:
    """The shortest range from 0 in which each deed occurs."""
    count = 1
    while not set(DEEDS) <= set(deeds(range(count))):
        count += 1
    return range(count)


def check(directory: Path, swept: Callable[..., CompletedProcess[str]]) -> None:
    """Every row that ``swept`` gives beside hostile seeds is as if they were not."""
    seeds = seeds_with_every_deed()
    hostile = deeds(seeds)
    command = [*("--suite", "hostile", "--seeds", str(len(seeds)), "--chunk-size", "20")]
    command += ["--module", "sweep_suites", "--json"]
    found = {}
    for name in ("hostile", "peaceful"):
        (directory / name).mkdir()
        if name == "hostile":
            done = swept(directory / name, *command)
        else:
            peace = environment(**{PEACE: "1"})
            done = sweep(directory / name, *command, "--runner", "inline", env=peace)
        assert done.returncode == (1 if name == "hostile" else 0), done.stderr
        assert json.loads(done.stdout)["status"] == "finished"
        found[name] = read_trials(directory / name / "out")
    rows = {name: {row["seed"]: row for row in stable_rows(found[name])} for name in found}
    assert list(rows["hostile"]) == list(rows["peaceful"]) == list(seeds)
    quiet = [seed for seed in seeds if hostile[seed] is None]
    assert quiet and [rows["hostile"][seed] for seed in quiet] == [
        rows["peaceful"][seed] for seed in quiet
    ]
    violations = read_violations(directory / "hostile" / "out").to_pylist()
    assert sorted((row["seed"], row["invariant"]) for row in violations) == [
        (seed, ROW_OF.get(str(deed), "crash")) for seed, deed in enumerate(hostile) if deed
    ]

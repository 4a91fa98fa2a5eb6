"""Sweeps of the toys in this process, by the command."""

from __future__ import annotations

from click.testing import CliRunner, Result

from pulsar_ml.cli.find.sweep import command as main
from tests.harness.toys.build_toys import toys_path


def sweep(*options: str) -> Result:
    common = [
        "--suites",
        "tests.spark.sweep_suites",
        "--module",
        str(toys_path()),
        "--runner",
        "inline",
    ]
    return CliRunner().invoke(main, [*common, *options])

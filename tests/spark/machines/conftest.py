"""A standalone cluster for all tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.cli.distribute.cluster import command


def of_cluster(name: str, directory: Path, *options: str) -> str:
    done = CliRunner().invoke(command, [name, *options, "--directory", str(directory)])
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two workers that are hosts of their own for Spark, started and stopped twice by commands."""
    directory = tmp_path_factory.mktemp("standalone") / "cluster"
    try:
        url = of_cluster("start", directory, "--spread")
        assert of_cluster("start", directory) == of_cluster("url", directory) == url
        yield url
    finally:
        ended = [of_cluster("stop", directory) for _ in range(2)]
    assert ended == ["ended master, worker-1, worker-2", "there is no cluster to stop"]

"""Fixtures of the tests of commands without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import Called, call

TOYS = "tests.stress.toy_suites"
Toys = Callable[..., Called]


@pytest.fixture
def toys(toys_so: Path, tmp_path: Path) -> Toys:
    """Calls a command of ``pulsar-ml`` on the toy suites; ``run`` with the toys' module."""

    def call_on_toys(name: str, *arguments: str) -> Called:
        more = []
        if name == "run":
            more = ["--records", str(tmp_path / "records"), "--module", str(toys_so)]
        return call(name, *arguments, "--suites", TOYS, *more)

    return call_on_toys

"""Tokens for cores: whose turn it is, and that nobody waits for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from pulsar_ml.campaign import turns
from pulsar_ml.campaign.turns import runs_at_once, share_cores, token

EVERY = 1024  # threads, more than there are cores


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    share_cores(f"tests {os.getpid()}")
    yield
    share_cores("")


def test_a_machine_makes_more_than_twice_as_many_runs_at_once_as_its_cores_have_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "processor_count", lambda: 8)
    assert [runs_at_once(threads) for threads in (1, 3, 4, 8, 9)] == [8, 7, 5, 3, 3]


def test_a_token_is_free_again_when_its_holder_ends() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with token(EVERY):
            os.write(write, b"held")
            os.kill(os.getpid(), 9)
    assert os.read(read, 4) == b"held"
    os.waitpid(child, 0)
    began = time.monotonic()
    with token(EVERY):
        assert time.monotonic() - began < turns.MOST_SECONDS


def test_who_waits_for_too_long_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_SECONDS", 0.01)
    with token(EVERY), token(EVERY):
        assert turns._taken(1) is None


def test_without_a_name_there_are_no_tokens() -> None:
    share_cores("")
    with token(EVERY):
        share_cores(f"tests {os.getpid()}")
        held = turns._taken(1)
        assert held is not None
        held.close()

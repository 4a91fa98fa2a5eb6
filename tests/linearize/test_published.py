"""Histories of the shape of published ones: numbers of calls and open calls, and the verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.histories.published import etcd_register, key_value
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, check
from pulsar_ml.harness.models import CasRegister

QUICK = Options(explain=False)


def pending(history: History) -> float:
    return float((history.records["ending"] != 0).mean())


def test_a_seed_is_a_history() -> None:
    for make in (
        etcd_register,
        lambda seed, operations: key_value(seed, clients=4, operations=operations),
    ):
        first, again, other = (make(seed, operations=60) for seed in (1, 1, 2))
        assert np.array_equal(first.records, again.records)
        assert not np.array_equal(first.records, other.records)


@pytest.mark.parametrize("operations", [100, 170])
def test_registers_have_as_many_open_calls_as_those_of_etcd(operations: int) -> None:
    samples = [etcd_register(seed, operations=operations) for seed in range(20)]
    assert all(len(history) == operations for history in samples)
    assert 0.1 < np.mean([pending(history) for history in samples]) < 0.2
    names = [
        str(call.name) for history in samples for call in map(history.call, range(len(history)))
    ]
    shares = [names.count(name) / len(names) for name in ("read", "write", "cas")]
    assert all(0.3 < share < 0.37 for share in shares)


def test_an_honest_register_is_legal_and_most_broken_ones_are_not() -> None:
    answers = {
        broken: [
            check(
                etcd_register(seed, operations=100, broken=broken), CasRegister(), options=QUICK
            ).answer
            for seed in range(12)
        ]
        for broken in (False, True)
    }
    assert answers[False] == [LEGAL] * 12
    assert answers[True].count(ILLEGAL) >= 6


def test_clients_of_a_map_are_always_inside_a_call_until_a_round_ends() -> None:
    history = key_value(1, clients=10, operations=300)
    records = history.records
    assert len(history) == 300
    open_at = [
        int(((records["invoked"] <= now) & (records["returned"] >= now)).sum())
        for now in range(11, int(records["returned"].max()))
    ]
    assert max(open_at) == 10
    assert np.mean(np.array(open_at) >= 9) > 0.7
    names = [history.call(index).name for index in range(len(history))]
    assert names.count("put") < 30 < names.count("get") < names.count("append") + 60

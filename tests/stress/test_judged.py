"""The model of every suite is asked in every world: one thread, real threads, the engine, Spark.

A model that refuses everything must be heard in each of them, the true one must not. That the
models see real mistakes is for tests/mutants/test_answers.py and
tests/mutants/test_concurrent_answers.py.
"""

from __future__ import annotations

import pytest

from pulsar_ml.campaign.trial import controlled, trial
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY, judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, TrialOptions, TrialResult
from pulsar_ml.suites.registry import SUITES
from tests.spark.contrary_suites import SUITES as CONTRARY

WORLDS = {
    "one thread": (trial, TrialOptions(threads=1, operations=20)),
    "real threads": (trial, TrialOptions(threads=3, operations=20)),
    "engine": (controlled, TrialOptions(module=CHECKED, executions=20)),
}


def played(world: str, suite: Suite) -> TrialResult:
    runner, options = WORLDS[world]
    result: TrialResult = runner.run_trial(suite, 1, options)
    return result


def test_every_suite_has_a_model() -> None:
    assert all(judge_of(suite.model) is not None for suite in SUITES.values())
    assert set(CONTRARY) == set(SUITES)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", SUITES)
def test_the_model_of_a_suite_is_asked(world: str, name: str) -> None:
    refused, accepted = played(world, CONTRARY[name]), played(world, SUITES[name])
    assert [violation.invariant for violation in refused.violations] == [LINEARIZABILITY]
    assert not accepted.violations
    assert refused.judged > 0 and accepted.judged > 0

"""The suite of the plain race."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITES = {"plain_race": Suite(name="plain_race", subject="plain_race", summary="A plain race.")}

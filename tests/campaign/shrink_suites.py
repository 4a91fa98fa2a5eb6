"""Suites whose failures are shrunk: toys, and code that kills its process."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITES = {
    name: Suite(name=name, subject=name, summary="A toy.")
    for name in ("racy", "counter", "ends_the_process", "computes_for_ever")
}

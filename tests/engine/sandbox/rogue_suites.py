"""The programs of rogues.h as suites, for the command line."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

NAMES = ("ends_the_process", "behaves")
SUITES = {
    name: Suite(name=name, subject=name, summary="Code that takes its process along.")
    for name in NAMES
}

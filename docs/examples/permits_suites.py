"""The suite of the tutorial."""

from __future__ import annotations

from pulsar_ml.campaign.suite import Suite

SUITES = {
    "permits": Suite(
        name="permits",
        subject="permits",
        summary="A counter of permits that checks, then acts.",
        operations=20_000,
        invariants={
            "P1": "Never more permits are held than the limit.",
            "P2": "At quiescence as many permits are taken as are held.",
        },
    )
}

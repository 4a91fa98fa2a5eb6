"""Campaigns: programs drawn from seeds, run as trials, kept as rows.

Modules with suites import :class:`Suite` and :class:`ControlledSize` from here.
"""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

__all__ = ["ControlledSize", "Suite"]

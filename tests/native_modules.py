"""Native modules that all tests of a process share, and the mutant that is selected in each."""

from __future__ import annotations

import sys

from pulsar_ml.campaign.trial.trial import select_mutant

PREFIX = "pulsar_ml_loaded_"  # of the names that load_extension gives


def unselect_mutants() -> None:
    """Select the unchanged code in each module of mutants that this process has loaded."""
    for name, module in list(sys.modules.items()):
        if name.startswith(PREFIX):
            select_mutant(module, None)

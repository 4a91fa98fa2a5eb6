"""Suites from an importable module, which may be a stranger's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import load_native
from pulsar_ml.errors import UsageError

ALL = "all"


def load_suites(module: str) -> dict[str, Suite]:
    """The ``SUITES`` of a module, which may lie in the working directory.

    Raises UsageError when there is no such module, or no suite in it.
    """
    if os.getcwd() not in sys.path:  # a console script does not look there
        sys.path.append(os.getcwd())
    try:
        found = load_native(module).SUITES
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"no suites in module {module!r}: {error}; it should define SUITES: dict[str, Suite], or "
            "functions test_*() of Python"
        ) from None
    if not isinstance(found, Mapping) or not all(isinstance(one, Suite) for one in found.values()):
        raise UsageError(f"SUITES of module {module!r} is {found!r:.80}, not a dict[str, Suite]")
    if not found:
        raise UsageError(f"SUITES of module {module!r} is empty")
    return dict(found)


def choose_suites(suites: Mapping[str, Suite], names: Sequence[str]) -> list[Suite]:
    """The named suites in the order given; all of them for no name or ``all``.

    Raises UsageError for a name that no suite has.
    """
    for name in names:
        if name not in suites and name != ALL:
            raise UsageError(f"no suite is called {name!r:.200}; there are: {', '.join(suites)}")
    if not names or ALL in names:
        return list(suites.values())
    return [suites[name] for name in dict.fromkeys(names)]

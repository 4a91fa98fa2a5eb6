"""Finds races in native code: subjects, random programs, an engine that decides every interleaving.

Documentation, examples and tests of other projects import these names from here and from nowhere
else. A name is loaded when it is first used, so that ``import pulsar_ml.harness`` is cheap.

*Building and loading.* :func:`build_extension`, :func:`checked_extension`, :func:`load_extension`,
:func:`load_checked`.

*Subjects and programs.* :class:`Subject`, :class:`Program`.

*Real threads.* :func:`run_program`, :func:`record_run`.

*Functions as tests, structures by their operations.* :func:`check`, :func:`operations`.

*Interleavings under the engine.* :func:`interleave`, :func:`explore`, :func:`shrink`.

*Histories and models.* :class:`History`, :class:`Call`, :func:`load_history`,
:func:`save_history`, :func:`check_history`, :func:`check_criterion`, :func:`check_model`,
:class:`PlainJudge`.

*Hypothesis* (needs the package ``hypothesis``). :mod:`strategies`, :class:`ConcurrentMachine`.

*Results and failures of these.* :class:`Checked`, :class:`Interleavings`, :class:`Exploration`,
:class:`Failure`, :class:`InterleavingFailure`, :class:`InvariantViolation`.

Cython code uses ``from pulsar_ml.harness cimport ...`` for what ``harness/__init__.pxd`` lists, and
C code includes ``pulsar_ml/harness/subject.h``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_ml.harness.building.build import build_extension
    from pulsar_ml.harness.building.checked import checked_extension
    from pulsar_ml.harness.building.load import load_checked, load_extension
    from pulsar_ml.harness.functions.check import Checked, check
    from pulsar_ml.harness.histories.files import load_history, save_history
    from pulsar_ml.harness.histories.history import Call, History
    from pulsar_ml.harness.histories.recording import record_run
    from pulsar_ml.harness.judges.plain import PlainJudge
    from pulsar_ml.harness.linearize.check import check as check_history
    from pulsar_ml.harness.linearize.consistency.criteria import check_criterion
    from pulsar_ml.harness.models.conformance import check_model
    from pulsar_ml.harness.search.explore import Exploration, explore
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.search.interleave import (
        InterleavingFailure,
        Interleavings,
        interleave,
    )
    from pulsar_ml.harness.search.shrink import shrink
    from pulsar_ml.harness.signatures.operations import operations
    from pulsar_ml.harness.subjects.program import Program
    from pulsar_ml.harness.subjects.subject import InvariantViolation, Subject
    from pulsar_ml.harness.subjects.threads import run_program
    from pulsar_ml.harness.testing import strategies
    from pulsar_ml.harness.testing.state_machine import ConcurrentMachine

__all__ = [
    "Call",
    "Checked",
    "ConcurrentMachine",
    "Exploration",
    "Failure",
    "History",
    "InterleavingFailure",
    "Interleavings",
    "InvariantViolation",
    "PlainJudge",
    "Program",
    "Subject",
    "build_extension",
    "check",
    "check_criterion",
    "check_history",
    "check_model",
    "checked_extension",
    "explore",
    "interleave",
    "load_checked",
    "load_extension",
    "load_history",
    "operations",
    "record_run",
    "run_program",
    "save_history",
    "shrink",
    "strategies",
]

# The module or package that has each name, and its name there if that differs. The imports above
# say the same to type checkers; a test compares the two.
_HOMES = {
    "Call": "histories.history",
    "Checked": "functions.check",
    "ConcurrentMachine": "testing.state_machine",
    "Exploration": "search.explore",
    "Failure": "search.failure",
    "History": "histories.history",
    "InterleavingFailure": "search.interleave",
    "Interleavings": "search.interleave",
    "InvariantViolation": "subjects.subject",
    "PlainJudge": "judges.plain",
    "Program": "subjects.program",
    "Subject": "subjects.subject",
    "build_extension": "building.build",
    "check": "functions.check",
    "check_criterion": "linearize.consistency.criteria",
    "check_history": "linearize.check:check",
    "check_model": "models.conformance",
    "checked_extension": "building.checked",
    "explore": "search.explore",
    "interleave": "search.interleave",
    "load_checked": "building.load",
    "load_extension": "building.load",
    "load_history": "histories.files",
    "operations": "signatures.operations",
    "record_run": "histories.recording",
    "run_program": "subjects.threads",
    "save_history": "histories.files",
    "shrink": "search.shrink",
    "strategies": "testing",
}


def __getattr__(name: str) -> object:
    """Import the module that defines a public name; AttributeError names the nearest one."""
    if name not in _HOMES:
        from difflib import get_close_matches

        nearest = get_close_matches(name, __all__, 1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    path, _, original = _HOMES[name].partition(":")
    home = import_module(f"{__name__}.{path}")
    if not hasattr(home, original or name):  # the name of a module
        import_module(f"{home.__name__}.{name}")
    value = getattr(home, original or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

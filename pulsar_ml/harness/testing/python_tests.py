"""Runs test functions of pytest that carry the marker ``interleave`` under the engine.

Such a test starts Python threads, and every execution is another schedule. A test with the fixture
``interleave`` is not one of them: the marker has that fixture's options there.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pulsar_ml.harness.testing.properties import REPLAYED, command_options, finish, not_again

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_ml.harness.search.failure import Failure

MARKER = "interleave"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Explore a marked test instead of calling it once."""
    marker = pyfuncitem.get_closest_marker(MARKER)
    if marker is None or MARKER in pyfuncitem.fixturenames:
        return None
    from pulsar_ml.harness.functions.budget import replacing

    # The frames of pytest and of the engine are of no use to the reader.
    __tracebackhide__ = True
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    test = pyfuncitem.obj

    def function() -> None:
        test(**arguments)

    function.__wrapped__ = test  # type: ignore[attr-defined]
    options = {name: value for name, value in marker.kwargs.items() if name != "split"}
    run_marked(pyfuncitem, function, replacing(options, command_options(pyfuncitem.config)))
    return True


def subject_name(item: pytest.Item) -> str:
    """Return the test's name, which also names the file of its record."""
    return re.sub(r"[^\w.\[\]-]", "_", item.name)[:100]


def run_marked(item: pytest.Item, function: Callable[[], object], options: dict[str, Any]) -> None:
    from pulsar_ml.errors import PulsarMlError
    from pulsar_ml.harness.functions.check import finish_python
    from pulsar_ml.harness.pythreads import check
    from pulsar_ml.harness.testing.budget import explored

    __tracebackhide__ = True
    name = subject_name(item)
    try:
        if (recorded := item.config.stash[REPLAYED]) is not None:
            replay(recorded, function, name, options)
        explore = partial(check.explored, function, name=name)
        done = explored(item, explore, options, check.EXECUTIONS)
        result = finish_python(done, function, name=name, **options)
    except PulsarMlError as error:
        pytest.fail(str(error), pytrace=False)
    finish(item, result)


def replay(
    failure: Failure, function: Callable[[], object], name: str, options: dict[str, Any]
) -> NoReturn:
    from pulsar_ml.harness.pythreads.check import replay_python
    from pulsar_ml.harness.search.interleave import InterleavingFailure

    __tracebackhide__ = True
    if failure.subject != name:
        pytest.skip(f"the record is of the test {failure.subject!r}")
    again, text = replay_python(function, failure, also=options.get("also", ()))
    if again.failure is not None:
        raise InterleavingFailure(failure, text)
    not_again(again)

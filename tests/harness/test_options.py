"""A wrong option of a search ends in one sentence that names the nearest right one."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness import Program, explore, interleave
from pulsar_ml.harness.search.explore import EngineOptions, check_options
from pulsar_ml.harness.search.lanes import cell_row
from pulsar_ml.harness.search.symbols import LONG_NAME, without_templates
from pulsar_ml.operations import _checked

SUBJECT = _checked.SUBJECTS["refcount"]
WRONG = [
    ("executons", "has no option 'executons'; did you mean 'executions'"),
    ("step_limits", "has no option 'step_limits'; did you mean 'step_limit'"),
    ("zzz", "has no option 'zzz'; it has: "),
]


@pytest.mark.parametrize(("name", "message"), WRONG)
def test_a_wrong_option_is_answered_with_the_nearest(name: str, message: str) -> None:
    options: dict[str, Any] = {name: 1}
    program = Program.generate(SUBJECT, 1, threads=2, operations=2, noise=False)
    with pytest.raises(UsageError, match=rf"^interleave\(\) {message}"):
        interleave(SUBJECT, **options)
    with pytest.raises(UsageError, match=rf"^explore\(\) {message}"):
        explore(SUBJECT, program, **{"executions": 1, **options})


def test_every_option_of_the_engine_is_known() -> None:
    check_options(explore, dict.fromkeys(EngineOptions.__annotations__))
    check_options(interleave, {"threads": 2, "bound": 1})


def test_threads_without_an_event_have_no_column() -> None:
    assert cell_row(0, "a", {0: 10, 2: 10}) == "a"
    assert cell_row(2, "b", {0: 10, 2: 10}) == " " * 10 + "b"
    assert cell_row(3, "c", {0: 10, 2: 10}) == " " * 20 + "c", "a thread that an operation started"
    assert cell_row(0, "x" * 12, {0: 10, 2: 10}) == "x" * 8 + "~", "cut to its column"


def test_long_names_lose_their_template_arguments() -> None:
    inner = "std::pair<long, std::vector<int, std::allocator<int> > >"
    long = f"ring<{inner}, {inner}>::push({inner} const&)"
    assert len(long) > LONG_NAME
    short = without_templates(long)
    assert len(short) <= LONG_NAME and short.startswith("ring<")
    assert "<...>" in short and "::push(" in short
    assert without_templates("apply(void*, int)") == "apply(void*, int)"
    operator = "operator<" + "x" * 100
    assert without_templates(operator) == operator

"""Makes the subject of a Python test again by the recipe of a record, which names its file."""

from __future__ import annotations

from functools import partial

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.pythreads.check import (
    LOCK_RULES,
    load_tests,
    prepared,
    python_subject,
    semantics_of,
)
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.recipe import Recipe
from pulsar_ml.harness.subjects.subject import Subject


def python_test_again(failure: Failure, recipe: Recipe) -> Subject:
    """Return the subject of a failed test of a file, which is imported.

    Raises UsageError when the file or the test is gone.
    """
    path = recipe.path()
    tests = load_tests(path)
    name = str(recipe.options["name"])
    if name not in tests:
        known = ", ".join(tests) or "none"
        raise UsageError(f"{path} has no test {name!r} any more; it has: {known}")
    subject = python_subject(tests[name], failure.subject)
    also = tuple(map(str, recipe.options["also"]))
    strict = failure.rule in LOCK_RULES
    subject.around = partial(prepared, semantics_of(failure), also, strict)
    return subject

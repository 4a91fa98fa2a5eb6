"""Builds the subject of a record again, from the source file that the record names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.functions.check import BUILDS, build_tests
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.models import model_named
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.signatures.operations import operations
from pulsar_ml.harness.subjects.recipe import Recipe
from pulsar_ml.harness.subjects.subject import Subject


def build_again(failure: Failure) -> Subject:
    """Build the subject of a failure by its recipe, with its judge if the model can be found.

    Raises UsageError when the file or the subject is gone, BadRecordError for a damaged recipe, and
    BuildError with the compiler's output.
    """
    recipe = Recipe.from_text(failure.recipe)
    path, options = recipe.path(), dict(recipe.options)
    try:
        if recipe.call == "operations":
            return again_by_operations(path, options)
        if recipe.call == "explore_object":
            from pulsar_ml.harness.pythreads.object_recipe import object_again

            return object_again(failure, recipe)
        if recipe.call == "check_python":
            from pulsar_ml.harness.pythreads.check import test_again

            return test_again(failure, recipe)
        database = options.pop("database", None)
        subjects = build_tests(
            read_source(path),
            into=folder_of_builds(options.pop("into", "")),
            database=Path(database) if database else None,
            **options,
        )
    except UsageError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise BadRecordError(f"the recipe of {failure.subject!r} is damaged: {error}") from None
    if failure.subject not in subjects:
        known = ", ".join(subjects)
        raise UsageError(f"{path} has no test {failure.subject!r} any more; it has: {known}")
    return subjects[failure.subject]


def folder_of_builds(into: str) -> Path:
    """The folder in which the subject was built, if it is there, else that of this folder."""
    return Path(into) if into and Path(into).is_dir() else BUILDS


def again_by_operations(path: Path, options: dict[str, Any]) -> Subject:
    signatures = {
        name: text if pairs is None else (text, dict(pairs))
        for name, text, pairs in options.pop("signatures")
    }
    chosen: dict[str, Any] = {**options, **signatures}
    chosen["into"] = folder_of_builds(options["into"])
    if options["model"]:
        try:
            chosen["model"] = model_named(options["model"])
        except UsageError:  # a failure with equal steps is recognised without it
            chosen["model"] = None
    return operations(path, chosen.pop("type"), **chosen)

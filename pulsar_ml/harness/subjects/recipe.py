"""How a subject was built from a source file: a record keeps it, to build its subject again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.versioned_json import build, read_object

KIND = "pulsar_ml recipe"
VERSION = 1
Call = Literal["build_tests", "operations", "explore_object", "check_python"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The call that built a subject.

    Attributes:
        call: the function that built it: ``build_tests`` or ``operations``; ``explore_object`` for
            the methods of an object of Python, ``check_python`` for a test function of Python.
        file: the source file; relative to ``folder`` when it is below that.
        folder: the working folder of that time.
        options: the arguments of the call, as JSON has them.
    """

    call: Call
    file: str
    folder: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(call: Call, file: Path, options: Any) -> Recipe:
        path, folder = file.resolve(), Path.cwd()
        name = path.relative_to(folder) if path.is_relative_to(folder) else path
        return Recipe(call, str(name), str(folder), options)

    @staticmethod
    def from_text(text: str) -> Recipe:
        """Return the recipe of its JSON. Raises BadRecordError for a damaged one."""
        what = "the recipe of the failure's subject"
        return build(Recipe, read_object(text, what, kind=KIND, versions=(VERSION,)), what)

    def to_json(self) -> str:
        """Return the recipe as JSON; "" when a value has no JSON."""
        content = {"kind": KIND, "version": VERSION, **asdict(self)}
        try:
            return json.dumps(content, sort_keys=True)
        except (TypeError, ValueError):
            return ""

    def path(self) -> Path:
        """Return the file: in the working folder, or in that of the recipe. UsageError for none."""
        places = (Path(self.file), Path(self.folder, self.file))
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise UsageError(
                f"the record is of code in {places[1]}, which does not exist; run the command in "
                "the folder of the project"
            )
        return found.resolve()


# By build and name: a subject of a Cython module is one object for all calls that build it.
_recipes: dict[tuple[str, str], Recipe] = {}


def keep_recipe(subject: Subject, recipe: Recipe) -> None:
    """Remember how a subject was built, for its failures."""
    _recipes[str(subject.build_id), subject.name] = recipe


def find_recipe(subject: Subject) -> Recipe | None:
    """Return the recipe of a subject: that of its judge, which has the model, or of its build."""
    recipe = getattr(subject.judge, "recipe", None)
    if isinstance(recipe, Recipe):
        return recipe
    return _recipes.get((str(subject.build_id), subject.name))


def recipe_of(subject: Subject) -> str:
    """Return the recipe of a subject as JSON; "" when none is known."""
    recipe = find_recipe(subject)
    return recipe.to_json() if recipe else ""

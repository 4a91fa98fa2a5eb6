"""Makes an object under test again by the recipe of a record, which names its class and model."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.pythreads.answers import ObjectJudge
from pulsar_ml.harness.pythreads.check import load_file, prepared, semantics_of
from pulsar_ml.harness.pythreads.objects import model_factory, object_subject
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.recipe import Recipe
from pulsar_ml.harness.subjects.subject import Subject


def files_of(recipe: Recipe) -> list[Path]:
    """Return the files whose code a recipe of this kind runs."""
    model = recipe.options.get("model")
    return [recipe.path(), *([Path(str(model[2]))] if isinstance(model, list) else [])]


def object_again(failure: Failure, recipe: Recipe) -> Subject:
    """Return the subject of a failure by its recipe, with its judge if the model has a name.

    Raises UsageError for code that cannot be imported any more.
    """
    options = recipe.options
    factory = named_object(str(options["module"]), str(options["name"]), recipe.path())
    ranges = {str(name): ranges_of(each) for name, each in options["methods"].items()}
    # In the order of the program, which numbers them; JSON has sorted the names.
    order = [name for name in Program.from_json(failure.program).operations if name in ranges]
    methods = {name: ranges[name] for name in order}
    subject = object_subject(factory, methods)
    also = tuple(map(str, options["also"]))
    subject.around = partial(prepared, semantics_of(failure), also)
    model = options["model"]
    if isinstance(model, list):
        module, name, file = map(str, model)
        model = named_object(module, name, Path(file))
    if model is not None:
        subject.judge = ObjectJudge(model_factory(model), methods)
        subject.judge.recipe = recipe
    return subject


def ranges_of(pairs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    return [(int(low), int(high)) for low, high in pairs]


def named_object(module: str, name: str, file: Path) -> Callable[[], object]:
    """Import the module of a file under its name, and return its class or function ``name``."""
    path = file.resolve()
    if module == "__main__":  # of a script
        loaded = load_file(path)
    else:
        depth = module.count(".") + (path.stem == "__init__")
        folder = str(path.parents[min(depth, len(path.parents) - 1)])
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            loaded = importlib.import_module(module)
        except Exception as error:  # the module's code may raise anything
            text = f"{type(error).__name__}: {error}"
            raise UsageError(f"the module {module} cannot be imported: {text}") from error
    found = getattr(loaded, name, None)
    place = Path(getattr(loaded, "__file__", None) or "")
    if place.resolve() != path or not callable(found):
        raise UsageError(f"{path} has no class or function {name!r} of the module {module}")
    factory: Callable[[], object] = found
    return factory

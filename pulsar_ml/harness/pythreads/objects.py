"""Explores generated programs that call the methods of a Python object: :func:`explore_object`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.models import model_named
from pulsar_ml.harness.pythreads import _fibers
from pulsar_ml.harness.pythreads.answers import ObjectJudge, public_methods, words_of
from pulsar_ml.harness.pythreads.check import build_of, describe_failure, engine_options
from pulsar_ml.harness.pythreads.session import require_support, session
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.harness.search.interleave import Interleavings, interleave
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.harness.signatures.answers import name_in
from pulsar_ml.harness.subjects.recipe import Recipe, keep_recipe
from pulsar_ml.harness.subjects.subject import Subject, subject_at

Ranges = Sequence[tuple[int, int]]
Reference = list[str]  # module, name, file
SMALL = (1, 4)  # the values of an argument, unless other ones are given


def explore_object(
    factory: Callable[[], object],
    *,
    model: Any,
    methods: Mapping[str, Ranges] | Iterable[str] | None = None,
    semantics: str = "gil",
    also: Iterable[str] = (),
    isolated: bool = True,
    limits: Limits | None = None,
    **options: Any,
) -> tuple[Interleavings, str]:
    """Explore programs whose threads call methods of the object that ``factory()`` returns.

    The answers must be those of some sequential order of the calls in which the model gives them
    (linearizability). ``model`` is the name of one that ships, a class with ``init`` and ``step``,
    or a class with the same methods, which is called sequentially. ``methods`` names those that are
    called, with the ranges of their arguments (1 to 4 unless given); by default, those of the
    model. The other options are those of :func:`pulsar_ml.harness.interleave`. Returns the counts,
    with the shrunk failure, and its text.
    """
    require_support()
    create = model_factory(model)
    called = chosen_methods(factory(), create(), methods)
    subject = object_subject(factory, called)
    chosen = engine_options(semantics, options)
    free = int(semantics == "free")
    packages = tuple(also)
    judge = ObjectJudge(create, called)
    keep_object_recipe(subject, factory, model, called, packages)

    def explored() -> tuple[Interleavings, str]:
        with session(semantics=semantics, also=packages) as texts:
            settings = {"free": (free, free)}
            found = interleave(subject, judge=judge, settings=settings, **chosen)
            if found.failure is None:
                return found, ""
            return found, describe_failure(found.failure, subject, texts, judge)

    return call(explored, limits=limits) if isolated else explored()


def object_subject(factory: Callable[[], object], methods: Mapping[str, Ranges]) -> Subject:
    """Return the subject whose operations are the methods of an object. The last one counts."""
    name = getattr(factory, "__name__", type(factory).__name__)
    rows = [(method, [(low, high) for low, high in each]) for method, each in methods.items()]
    address = _fibers.set_object(factory, words_of, name, rows)
    return subject_at(address, build_of(factory), None, needs_gil=True)


def model_factory(model: Any) -> Callable[[], Any]:
    """Return a function for the model."""
    if isinstance(model, str):
        return lambda: model_named(model)
    if callable(model):
        factory: Callable[[], Any] = model
        return factory
    raise UsageError(f"model={model!r} is neither the name of a model nor a class")


def chosen_methods(
    target: object, model: Any, methods: Mapping[str, Ranges] | Iterable[str] | None
) -> dict[str, Ranges]:
    """Return the methods to call with the ranges of their arguments.

    Raises UsageError for a method that the object or the model does not have.
    """
    known: Mapping[str, int] = getattr(model, "operations", {}) or public_methods(model)
    if isinstance(methods, Mapping):
        chosen: dict[str, Ranges] = {name: list(ranges) for name, ranges in methods.items()}
    else:
        names = list(methods) if methods is not None else [n for n in known if hasattr(target, n)]
        chosen = {name: [SMALL] * known.get(name_in(model, name), 0) for name in names}
    kind = type(target).__name__
    if not chosen:
        raise UsageError(f"{kind} has no method that the model knows: name them by methods=")
    for name, ranges in chosen.items():
        if not callable(getattr(target, name, None)):
            raise UsageError(f"{kind} has no method {name!r}")
        if (own := name_in(model, name)) not in known:
            raise UsageError(f"the model has no operation {name!r}; it has: {', '.join(known)}")
        if len(ranges) > 3 or not all(low <= high for low, high in ranges):
            raise UsageError(
                f"{name} has the ranges {ranges!r}; there may be three, each as (low, high)"
            )
        if hasattr(model, "operations") and known[own] != len(ranges):
            raise UsageError(
                f"{name} has {len(ranges)} arguments here, and {known[own]} in the model"
            )
    return chosen


def keep_object_recipe(
    subject: Subject,
    factory: Callable[[], object],
    model: Any,
    methods: Mapping[str, Ranges],
    also: tuple[str, ...],
) -> None:
    """Remember how to call an object's methods again, if its class has a name in a file."""
    if (found := reference_of(factory)) is None:
        return
    module, name, file = found
    options = {
        "module": module,
        "name": name,
        "model": model if isinstance(model, str) else reference_of(model),
        "methods": {method: [list(each) for each in ranges] for method, ranges in methods.items()},
        "also": list(also),
    }
    keep_recipe(subject, Recipe.of("explore_object", Path(file), options))


def reference_of(value: Any) -> Reference | None:
    """Return module, name and file of a class or function; None for one without such a name."""
    name = getattr(value, "__qualname__", "")
    module = sys.modules.get(str(getattr(value, "__module__", "")))
    if module is None or getattr(module, name, None) is not value:
        return None
    with suppress(TypeError):  # of no file
        file = inspect.getsourcefile(module)
        if file:
            return [module.__name__, name, str(Path(file).resolve())]
    return None

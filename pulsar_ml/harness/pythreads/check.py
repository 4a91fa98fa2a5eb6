"""Explores Python functions as tests: :func:`check_python` and the functions of ``check_*.py``."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.errors import NotRepeatedError, UsageError
from pulsar_ml.harness.building.build import engine_identity
from pulsar_ml.harness.causes.description import why_lines
from pulsar_ml.harness.functions.budget import with_budget
from pulsar_ml.harness.functions.source import TestFunction
from pulsar_ml.harness.pythreads import _fibers
from pulsar_ml.harness.pythreads.causes import likely_cause
from pulsar_ml.harness.pythreads.failures import stacks_text
from pulsar_ml.harness.pythreads.native_modules import checked_modules, identity_of
from pulsar_ml.harness.pythreads.session import SEMANTICS, require_support, session
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import (
    Exploration,
    explore,
    in_child,
    lost_exploration,
    one_step_text,
)
from pulsar_ml.harness.search.failure import Failure, Replayed
from pulsar_ml.harness.search.interleave import SHRINK_EXECUTIONS
from pulsar_ml.harness.search.sandbox import call, replay_lost
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.hash_seed import hash_seed, seed_text
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.recipe import Recipe, keep_recipe
from pulsar_ml.harness.subjects.subject import Subject, subject_at

EXECUTIONS = 20_000  # of each test, at most
OF_TEST = ("name", "semantics", "also", "strict", "isolated", "limits")  # options of both halves
LOCK_RULES = ("lock left locked", "lock of another thread")  # as in native/replaced/held.c
WAITS = ("deadlock", "livelock", "not lock-free")

Test = Callable[[], object]


def python_subject(function: Test, name: str) -> Subject:
    """Return the subject whose only operation calls ``function``, the one that was named last."""
    return subject_at(_fibers.set_test(function, name), build_of(function), None, needs_gil=True)


def build_of(function: Callable[..., object]) -> str:
    """Return a name for the code: of the test's file, this interpreter and the engine."""
    key = hashlib.sha256(loaded_engine())
    key.update(sys.version.encode())
    key.update(identity_of(checked_modules()))
    module = inspect.getmodule(inspect.unwrap(function))
    with suppress(OSError, TypeError):  # a function of an interactive session has no file
        key.update(inspect.getsource(module or function).encode())
    return key.hexdigest()[:12]


@functools.cache
def loaded_engine() -> bytes:
    """Return the identity of the engine; this process has loaded it and keeps it."""
    return engine_identity()


def subject_of(function: Test, name: str) -> Subject:
    return python_subject(function, name or getattr(function, "__name__", "test"))


def program_of(subject: Subject, semantics: str = "gil") -> Program:
    """Return the one program of a test: the engine's first thread calls the function."""
    free = int(semantics == "free")
    return Program.generate(
        subject, 0, threads=1, operations=1, noise=False, settings={"free": (free, free)}
    )


def semantics_of(failure: Failure) -> str:
    return "free" if Program.from_json(failure.program).settings["free"] else "gil"


def engine_options(semantics: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's options for Python.

    A checked module in the process brings its memory model and its races.
    """
    if semantics not in SEMANTICS:
        raise UsageError(
            f"semantics {semantics!r} is not known; use one of: {', '.join(SEMANTICS)}"
        )
    checked = bool(checked_modules())
    fixed = {
        "races": checked or semantics == "free",
        "leaks": False,
        "reuse": "quarantine",
    }
    for name in fixed:
        if name in options:
            raise UsageError(
                f"a test in Python has no option {name!r}; leave it out, and choose with "
                "semantics whether races are reported"
            )
    mode = {"mode": "c11" if checked else "sc"}
    return {**mode, **with_budget(options, EXECUTIONS), **fixed}


def explore_python(
    function: Test,
    *,
    shrinks: bool = True,
    on_batch: Callable[[int], object] = lambda executions: None,
    **options: Any,
) -> tuple[Exploration, str]:
    """Explore a Python function as :func:`explored`; return the counts and its failure's text."""
    done = explored(function, on_batch=on_batch, **options)
    kept = {name: options[name] for name in OF_TEST if name in options}
    return finished(done, function, shrinks=shrinks, **kept)


def explored(
    function: Test,
    *,
    name: str = "",
    semantics: str = "gil",
    also: Iterable[str] = (),
    strict: bool = False,
    isolated: bool = True,
    limits: Limits | None = None,
    on_batch: Callable[[int], object] = lambda executions: None,
    **options: Any,
) -> Exploration:
    """Explore the schedules of a Python function; return the counts and its failure.

    ``semantics`` is "gil", where single accesses never race, or "free", where two accesses to one
    variable that nothing orders are a failure. ``also`` names installed packages that are under
    test. With ``strict`` a lock that stays locked, or that another thread releases, is a failure
    and no remark. The executions are made in a child process unless ``isolated`` is False. Other
    options are those of :func:`pulsar_ml.harness.explore`.
    """
    require_support()
    if "threads" in options:
        raise UsageError(
            "a test in Python has no option 'threads': it starts its threads itself; leave it out"
        )
    chosen = engine_options(semantics, options)
    packages = tuple(also)
    subject = subject_of(function, name)
    program = program_of(subject, semantics)
    keep_test(function, subject, packages, strict=strict)

    def within(on_batch: Callable[[int], object]) -> Exploration:
        with session(semantics=semantics, also=packages, strict=strict) as texts:
            try:
                done = explore(subject, program, on_batch=on_batch, **chosen)
            except NotRepeatedError as error:
                raise NotRepeatedError(
                    f"{error}; {likely_cause(texts.causes)}; {seed_text(hash_seed())}"
                ) from None
            return replace(
                done, one_step=texts.native.described(), locks=tuple(sorted(set(texts.locks)))
            )

    try:
        return in_child(within, on_batch, limits) if isolated else within(on_batch)
    except LostError as error:
        known = {**chosen, "first": chosen.get("first", 0), "part": chosen.get("part") or ""}
        known.pop("executions")
        return lost_exploration(error, subject, program, known)


def finished(
    done: Exploration,
    function: Test,
    *,
    name: str = "",
    semantics: str = "gil",
    also: Iterable[str] = (),
    strict: bool = False,
    isolated: bool = True,
    limits: Limits | None = None,
    shrinks: bool = True,
) -> tuple[Exploration, str]:
    """Shrink the failure of an exploration, which may take long; return it with its text.

    The options are those of :func:`explored`.
    """
    failure = done.failure
    if failure is None:
        return done, ""
    if failure.ended_process:
        return done, failure.summary()
    found, packages, subject = failure, tuple(also), subject_of(function, name)

    def described() -> tuple[Failure, str]:
        with session(semantics=semantics, also=packages, strict=strict) as texts:
            small = shrink(found, subject, budget=SHRINK_EXECUTIONS) if shrinks else found
            return small, describe_failure(small, subject, texts)

    small, text = call(described, limits=limits) if isolated else described()
    return replace(done, failure=small), text


def describe_failure(failure: Failure, subject: Subject, texts: Any, judge: Any = None) -> str:
    """Replay a failure in a session: its summary, table and stacks."""
    text = failure.describe(subject, judge=judge, remarks=why_lines(failure, subject, judge=judge))
    if modules := texts.native.described():
        text = f"{text}\n  {one_step_text(modules)}"
    if failure.kind in WAITS:
        return f"{text}\n\n{stacks_text()}"
    return f"{text}\n\n{texts.text}" if texts.text else text


def replay_python(
    function: Test,
    failure: Failure,
    *,
    also: Iterable[str] = (),
    isolated: bool = True,
    limits: Limits | None = None,
) -> tuple[Replayed, str]:
    """Repeat a failure; return the result, without its steps, and its text."""
    subject = python_subject(function, failure.subject)
    semantics = semantics_of(failure)
    packages = tuple(also)
    strict = failure.rule in LOCK_RULES
    if failure.ended_process:
        subject.around = partial(prepared, semantics, packages, strict)
        ended = replay_lost(failure, subject, limits=limits)
        return ended, failure.summary(ended)

    def again() -> tuple[Replayed, str]:
        with session(semantics=semantics, also=packages, strict=strict) as texts:
            found = failure.replay(subject)
            return replace(found, trace=[]), describe_failure(failure, subject, texts)

    return call(again, limits=limits) if isolated else again()


@contextmanager
def prepared(semantics: str, also: tuple[str, ...], strict: bool = False) -> Iterator[None]:
    """Open a session whose texts nobody reads."""
    with session(semantics=semantics, also=also, strict=strict):
        yield


def keep_test(function: Test, subject: Subject, also: tuple[str, ...], *, strict: bool) -> None:
    """Remember the file of a test, if :func:`load_tests` finds the test there, for its failures."""
    name = getattr(function, "__qualname__", "")
    path = file_of(function)
    if inspect.isfunction(function) and name.startswith("test_") and path.is_file():
        module = sys.modules.get(function.__module__)
        if getattr(module, name, None) is function and not hasattr(function, "__wrapped__"):
            options = {"name": name, "also": list(also), "strict": strict}
            keep_recipe(subject, Recipe.of("check_python", path, options))


def test_again(failure: Failure, recipe: Recipe) -> Subject:
    """Return the subject of a failure by its recipe. UsageError when the test is gone."""
    path, name = recipe.path(), str(recipe.options["name"])
    tests = load_tests(path)
    if name not in tests:
        known = ", ".join(tests) or "none"
        raise UsageError(f"{path} has no test {name!r} any more; it has: {known}")
    subject = python_subject(tests[name], failure.subject)
    also = tuple(map(str, recipe.options["also"]))
    strict = bool(recipe.options["strict"])
    subject.around = partial(prepared, semantics_of(failure), also, strict)
    return subject


def test_of(function: Test) -> TestFunction:
    """Return name and line of a test."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return TestFunction(getattr(function, "__name__", "test"), code.co_firstlineno if code else 1)


def file_of(function: Test) -> Path:
    return Path(inspect.getsourcefile(inspect.unwrap(function)) or "python")


def load_tests(path: Path) -> dict[str, Test]:
    """Import a file and return its functions ``test_*``, in the order of the file.

    Raises UsageError when the file cannot be imported.
    """
    module = load_file(path)
    return {
        name: value
        for name, value in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(value)
    }


def load_file(path: Path) -> ModuleType:
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no file of Python code")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except Exception as error:
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module

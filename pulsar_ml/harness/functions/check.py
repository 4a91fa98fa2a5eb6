"""Explores the test functions of a file under the engine: the calls behind ``pulsar-ml check``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, overload

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.budgets.passing import met_words
from pulsar_ml.harness.causes.description import described
from pulsar_ml.harness.functions.budget import replacing, with_budget
from pulsar_ml.harness.functions.called import function_subject, is_native, module_of
from pulsar_ml.harness.functions.flags import database_flags, find_database
from pulsar_ml.harness.functions.library import library_subjects
from pulsar_ml.harness.functions.source import (
    TestFunction,
    TestSource,
    near_misses,
    read_source,
)
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import Failure, Replayed
from pulsar_ml.harness.search.interleave import (
    SHRINK_EXECUTIONS,
    InterleavingFailure,
    Interleavings,
    interleave,
)
from pulsar_ml.harness.search.partition import bounds_met
from pulsar_ml.harness.search.sandbox import call, replay_lost
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.recipe import Recipe, keep_recipe
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.wording import counted

EXECUTIONS = 50_000  # of each native test, at most
BUILDS = Path(".pulsar_ml") / "build"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of one test function.

    Attributes:
        file, test: the test.
        exploration: counts of its executions.
        failure: its failure, shrunk, or None.
        text: the failure with a column for each thread, or "".
        interrupted: True when an interrupt ended the shrinking of the failure.
    """

    file: Path
    test: TestFunction
    exploration: Exploration
    failure: Failure | None
    text: str
    interrupted: bool = False

    @property
    def verdict(self) -> str:
        """The verdict: "violation", "clean", or "nothing_exercised"."""
        return self.exploration.verdict

    def describe(self) -> str:
        """Describe the result in one line."""
        done = self.exploration
        if self.failure is not None:
            known = {met.failure.signature: met.at for met in done.met}
            number = known.get(self.failure.signature, done.executions)
            found = f"{self.failure.kind} at execution {number:,} of seed {done.seed}"
            return "; ".join(filter(None, [found, met_words(done.met, done.executions)]))
        count = f"{counted(done.executions, 'execution')}, {counted(done.statistics['classes'], 'class')}"
        if self.verdict != "clean" and done.executions and not done.counting:
            at = f" ({done.assumption})" if done.assumption else ""
            return f"nothing exercised: an assumption held in none of {count}{at}"
        if self.verdict != "clean":
            return f"nothing exercised in {count}: no location was used by two threads"
        if done.exhausted:
            return f"clean: {count}, all there are {done.exhausted}"
        limits = [
            f"{done.statistics[name]:,} {name}"
            for name in ("cut", "discarded")
            if done.statistics[name]
        ]
        return "; ".join([f"clean: {count}", *limits, *filter(None, [bounds_met(done.bounds)])])


@dataclass(frozen=True, slots=True)
class PythonTest:
    """A test function of Python: it is called, and nothing is built."""

    function: Callable[[], object]


def tests_of(source: TestSource, **build: Any) -> Mapping[str, Subject | PythonTest]:
    """Import a file of Python, build another one; return what each test's name stands for.

    ``build`` are the options of :func:`build_tests`, which Python needs none of.
    """
    if source.language == "python":
        from pulsar_ml.harness.pythreads.check import load_tests

        return {name: PythonTest(each) for name, each in load_tests(source.path).items()}
    return build_tests(source, **build)


def build_tests(
    source: TestSource,
    *,
    into: Path = BUILDS,
    flags: Sequence[str] = (),
    database: Path | None = None,
    volatile: str = "plain",
) -> dict[str, Subject]:
    """Build a file of tests for the engine; return a subject for each test's name.

    A test that the preprocessor leaves out has none. ``into`` is the folder of builds. ``flags`` go
    to the compiler, after those that a compilation database (by default the nearest one) has for
    the file. Raises BuildError with the compiler's output.
    """
    arguments = {"into": str(Path(into).resolve()), "flags": list(flags), "volatile": volatile}
    arguments["database"] = str(database.resolve()) if database else ""
    recipe = Recipe.of("build_tests", source.path, arguments)
    found = database or find_database(source.path)
    known = database_flags(found, source.path) if found else []
    if source.language == "cython":
        from pulsar_ml.harness.functions.cython_tests import module_subjects

        subjects = module_subjects(source, into=into, flags=[*known, *flags], volatile=volatile)
    else:
        subjects = library_subjects(source, into=into, flags=[*known, *flags], volatile=volatile)
    for subject in subjects.values():
        keep_recipe(subject, recipe)
    return subjects


def most_executions(subject: Subject | PythonTest) -> int:
    """Return the default for the executions of a test."""
    if isinstance(subject, PythonTest):
        from pulsar_ml.harness.pythreads.check import EXECUTIONS as OF_PYTHON

        return OF_PYTHON
    return EXECUTIONS


def check_function(
    file: Path,
    test: TestFunction,
    subject: Subject | PythonTest,
    *,
    limits: Limits | None = None,
    on_batch: Callable[[int], object] = lambda executions: None,
    **options: Any,
) -> Checked:
    """Explore one test in a child process; ``options`` are those of :func:`explore`.

    ``threads`` is another one: so many threads call the function at once; the default is one.
    An interrupt while the failure is shrunk leaves it as it was found.
    """
    done = explore_test(test, subject, limits=limits, on_batch=on_batch, **options)
    return finish_test(file, test, subject, done, limits=limits, **options)


def explore_test(
    test: TestFunction,
    subject: Subject | PythonTest,
    *,
    limits: Limits | None = None,
    on_batch: Callable[[int], object] = lambda executions: None,
    **options: Any,
) -> Exploration:
    """Explore one test in a child process; its failure is as it was found."""
    if isinstance(subject, PythonTest):
        from pulsar_ml.harness.pythreads.check import explored

        return explored(subject.function, limits=limits, on_batch=on_batch, **options)
    threads = options.pop("threads", 1)
    if subject.max_threads and threads > subject.max_threads:
        raise UsageError(
            f"{test.name}: threads is {threads}, and a function of Cython is called by one thread; "
            "start the threads in the test, and leave threads out"
        )
    chosen = {"reuse": "mixed", **with_budget(options, EXECUTIONS)}
    program = Program.of_test(subject, threads)
    return explore(subject, program, isolated=True, limits=limits, on_batch=on_batch, **chosen)


def finish_test(
    file: Path,
    test: TestFunction,
    subject: Subject | PythonTest,
    done: Exploration,
    *,
    limits: Limits | None = None,
    **options: Any,
) -> Checked:
    """Shrink the failure of a test that was explored with these options, and describe it.

    An interrupt meanwhile leaves the failure as it was found.
    """
    if isinstance(subject, PythonTest):
        return finish_python(done, subject.function, limits=limits, **options)
    failure = done.failure
    text = ""
    interrupted = False
    if failure is not None and failure.ended_process:
        text = failure.summary()
    elif failure is not None:
        found = failure
        try:
            failure = call(lambda: shrink(found, subject, budget=SHRINK_EXECUTIONS), limits=limits)
            shrunk = failure
            text = call(lambda: described(shrunk, subject), limits=limits)
        except KeyboardInterrupt:
            interrupted, text = True, failure.summary()
    return Checked(file, test, done, failure, text, interrupted)


def replayed_text(
    failure: Failure,
    subject: Subject | PythonTest,
    limits: Limits | None,
    also: Sequence[str] = (),
) -> tuple[Replayed, str]:
    """Repeat ``failure`` in a child process; return the result, without its steps, and its text.

    ``also`` is the option of a test in Python.
    """
    if isinstance(subject, PythonTest):
        from pulsar_ml.harness.pythreads.check import replay_python

        return replay_python(subject.function, failure, also=also, limits=limits)
    if failure.ended_process:
        again = replay_lost(failure, subject, limits=limits)
        return again, failure.summary(again)
    found = call(lambda: replace(failure.replay(subject), trace=[]), limits=limits)
    return found, call(lambda: described(failure, subject), limits=limits)


def chosen_tests(source: TestSource, name: str | None) -> tuple[TestFunction, ...]:
    """The tests of a file, or the one called ``name``. UsageError when there is none."""
    if name is None:
        return source.tests
    found = tuple(test for test in source.tests if test.name == name)
    if not found:
        known = [test.name for test in source.tests]
        nearest = get_close_matches(name, known, 1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"it has: {', '.join(known) or 'none'}"
        raise UsageError(f"{source.path.name} has no test {name!r}; {hint}")
    return found


def check_python(function: Callable[[], object], **options: Any) -> Checked:
    """Explore a Python function, with its threads, in a child process; see :func:`check`.

    An interrupt while the failure is shrunk leaves it as it was found.
    """
    from pulsar_ml.harness.pythreads.check import explored

    return finish_python(explored(function, **options), function, **options)


def finish_python(done: Exploration, function: Callable[[], object], **options: Any) -> Checked:
    """Shrink the failure of a Python function and describe it, see :func:`finish_test`."""
    from pulsar_ml.harness.pythreads.check import OF_TEST, file_of, finished, test_of

    kept = {name: options[name] for name in OF_TEST if name in options}
    interrupted = False
    try:
        done, text = finished(done, function, **kept)
    except KeyboardInterrupt:
        interrupted = True
        text = done.failure.summary() if done.failure else ""
    return Checked(file_of(function), test_of(function), done, done.failure, text, interrupted)


def check_native(function: Callable[[], object], **options: Any) -> Checked:
    """Explore a function of a checked Cython module, which takes nothing; see :func:`check`."""
    subject = function_subject(function)
    test = TestFunction(subject.name, 1, needs_gil=True)
    return check_function(module_of(function) or Path(), test, subject, **options)


def check_methods(factory: Callable[[], object], **options: Any) -> Interleavings:
    """Explore programs of an object's methods, and raise the failure; see :func:`check`."""
    from pulsar_ml.harness.pythreads.objects import explore_object

    __tracebackhide__ = True
    found, text = explore_object(factory, **options)
    if found.failure is not None:
        raise InterleavingFailure(found.failure, f"{text}\n{found.describe()}")
    if not found.exercised:
        raise AssertionError(f"{found.describe()}; nothing was exercised by two threads")
    return found


def check_subject(subject: Subject, **options: Any) -> Interleavings:
    """Explore random programs of a subject by :func:`interleave`, and raise the failure."""
    __tracebackhide__ = True
    found = interleave(subject, **options)
    if found.failure is not None:
        text = found.failure.describe(subject, judge=options.get("judge"))
        raise InterleavingFailure(found.failure, f"{text}\n{found.describe()}")
    if not found.exercised:
        raise AssertionError(f"{found.describe()}; nothing was exercised by two threads")
    return found


@overload
def check(
    target: Path | str | Callable[[], object], *, test: str | None = None, **options: Any
) -> tuple[Checked, ...]: ...
@overload
def check(target: Subject, *, test: None = None, **options: Any) -> Interleavings: ...


def check(target: Any, *, test: str | None = None, **options: Any) -> Any:
    """Explore the tests of a file, a function, or a subject; raise a failure.

    The file is of C, C++, Cython or Python. A test is a function ``void test_*()``, in Cython a
    ``cdef`` or ``def`` function ``test_*()``, in Python a function ``test_*()``.
    It starts threads by the means of its language, and asserts. ``test`` names a single one.
    ``options`` are those of :func:`explore` and override the file's comments; with ``seconds`` and
    no ``executions`` their number has no limit, and ``threads`` threads call each function at once.
    ``flags`` is a list for the compiler. The result has a row for each test.

    A Python function takes no argument, starts threads of ``threading`` or
    ``concurrent.futures``, and asserts. Its options are ``semantics`` ("gil", or "free" to report
    races), ``also`` (installed packages that are under test), ``strict`` (a lock that stays locked
    at the end, or that another thread releases, is a failure and no remark) and those of
    :func:`explore` but for ``races``, ``leaks`` and ``reuse``. ``mode`` is the memory model of
    checked modules that the test calls: "c11" unless given.

    With ``model`` the target is a class of Python, or a function that returns an object. Generated
    programs call its methods from several threads, and the model judges the answers:
    ``check(Stack, model="stack", methods=["push", "pop"])``; see
    :func:`pulsar_ml.harness.pythreads.objects.explore_object`.

    A function of a checked Cython module (:func:`load_checked`) that takes nothing is a test, too.
    A :class:`Subject` is explored by :func:`interleave`, whose options it takes and whose result is
    returned.

    Raises InterleavingFailure for the first test that fails, AssertionError for one in which no two
    threads met, UsageError for a file without tests, and BuildError with the compiler's output.
    """
    __tracebackhide__ = True
    if isinstance(target, Subject):
        return check_subject(target, **options)
    if "model" in options and callable(target):
        return check_methods(target, **options)
    if callable(target):
        return (passed(check_callable(target, **options)),)
    build: dict[str, Any] = {
        name: options.pop(name) for name in ("into", "flags", "volatile") if name in options
    }
    source = read_source(Path(target))
    if source.language == "python" and build:
        raise UsageError(f"{source.path.name} is not built: leave {', '.join(build)} out")
    tests = chosen_tests(source, test)
    if not tests:
        others = near_misses(source.path)
        hint = f"; {others}" if others else ""
        raise UsageError(f"{source.path.name} has no test: no function test_*() was found{hint}")
    subjects = tests_of(source, **build)
    results = []
    for each in tests:
        if each.name not in subjects:  # the preprocessor leaves it out
            continue
        chosen = replacing(each.options, options)
        results.append(passed(check_function(source.path, each, subjects[each.name], **chosen)))
    return tuple(results)


def check_callable(function: Callable[[], object], **options: Any) -> Checked:
    """Explore one function: each kind has its own way. The one place to add another kind."""
    if is_native(function):
        return check_native(function, **options)
    return check_python(function, **options)


def passed(result: Checked) -> Checked:
    """Return the result of a clean test; raise that of another."""
    __tracebackhide__ = True
    if result.failure is not None:
        raise InterleavingFailure(result.failure, f"{result.test.name}: {result.text}")
    if result.verdict != "clean":
        raise AssertionError(f"{result.test.name}: {result.describe()}")
    return result

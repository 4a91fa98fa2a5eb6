"""Makes any structure a subject from the signatures of its operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pulsar_ml.errors import BuildError, UsageError
from pulsar_ml.harness.functions import LANGUAGES
from pulsar_ml.harness.functions.check import BUILDS
from pulsar_ml.harness.functions.library import library_subjects
from pulsar_ml.harness.functions.source import TestFunction, TestSource
from pulsar_ml.harness.models import model_named
from pulsar_ml.harness.signatures.answers import CRITERIA, AnswersJudge, name_in
from pulsar_ml.harness.signatures.c_glue import unit
from pulsar_ml.harness.signatures.cython_glue import misspelt, module_part, shortened
from pulsar_ml.harness.signatures.recipes import recipe_of_operations
from pulsar_ml.harness.signatures.signature import Method, nearest_of, read_method
from pulsar_ml.harness.subjects.recipe import keep_recipe
from pulsar_ml.harness.subjects.subject import Subject

C_FILES = frozenset({".c", ".h"})
C_PLUS_PLUS_FILES = frozenset({".hpp", ".hh", ".hxx", ".cpp", ".cc", ".cxx", ".ipp", ".tpp"})
OPTIONS = (
    "model", "criterion", "create", "destroy", "one_thread", "name", "flags", "into", "checked", "volatile",
)  # fmt: skip
MOST_OPERATIONS = 32

Signature = str | tuple[str, Mapping[Any, Any]]


def operations(
    file: Path | str,
    type: str | None = None,
    /,
    *,
    model: Any = None,
    criterion: str = "linearizable",
    create: str = "",
    destroy: str = "",
    one_thread: Sequence[str | Sequence[str]] = (),
    name: str = "",
    flags: Sequence[str] = (),
    into: Path | str = BUILDS,
    checked: bool = True,
    volatile: str = "plain",
    **signatures: Signature,
) -> Subject:
    """Build the subject of a structure from the signatures of its operations.

    ::

        ring = operations("ring.hpp", "Ring<int>", model="queue",
                          push="push(int)", pop="bool pop(int&)")
        check(ring, threads=2, operations=3)

    ``file`` is a header or source in C or C++, or a ``.pyx`` with a cdef class. Each further
    keyword is an operation: a method of ``type``, or with ``self`` among the parameters a function,
    as ``bool ring_push(self, int)``. Arguments are drawn from 1 to 4, or as ``int key in 1..9``
    says. References and pointers that are not constant are values that the method writes; ``void*``
    is opaque. The answer is None for nothing (a null pointer, an empty optional, a false with
    values to write), else the value. ``("int pop()", {-1: None})`` gives results other meanings.

    ``model`` judges the answers: the name of one that ships, or a class with ``init`` and ``step``;
    without it only races, crashes, leaks and the like are failures. ``criterion`` is "linearizable"
    or "sequential"; the second lets a thread miss what another did before, as stale reads of weak
    memory do. ``create`` is an expression for a new structure, or one that initialises ``self``;
    ``destroy`` ends it. ``one_thread`` names operations, or groups of operations, that one thread
    calls, such as the consumer of a queue. ``flags`` are for the compiler, ``into`` is the folder
    of builds, and ``volatile`` says whether volatile accesses are "plain" ones or "relaxed"
    atomics. ``checked=False`` builds for real threads (:func:`run_program`) and not for the engine.

    Raises UsageError for a wrong signature, option or model, and BuildError with the compiler's
    output.
    """
    path = Path(file).resolve()
    arguments = {
        "type": type, "model": model, "criterion": criterion, "create": create, "destroy": destroy,
        "one_thread": one_thread, "name": name, "flags": flags, "into": into, "volatile": volatile,
        "checked": checked, "signatures": signatures,
    }  # fmt: skip
    if not path.is_file():
        raise UsageError(f"there is no file {file}; name the header or .pyx of the structure")
    methods, meanings = read_signatures(signatures)
    language = language_of(path, type, methods)
    roles = roles_of(methods, one_thread)
    if criterion not in CRITERIA:
        raise UsageError(f"criterion is {criterion!r}; it may be: {', '.join(CRITERIA)}")
    factory = None if model is None else model_factory(model, methods)
    judge = AnswersJudge(factory, meanings, criterion) if factory else None
    name = name or name_of(path, type)
    source = TestSource(path, language, (TestFunction(name, 1),), checked=checked)
    folder = Path(into)
    if language == "cython":
        if type is None or destroy:
            raise UsageError(f"{path.name}: name the cdef class; its __dealloc__ ends it")
        text = module_part(name=name, type=type, methods=methods, roles=roles, create=create)
        subject = cython_subject(source, type, methods, text, folder, flags, volatile)
    else:
        text = unit(
            path, language, name=name, type=type or "char", methods=methods, roles=roles,
            create=create, destroy=destroy,
        )  # fmt: skip
        source = replace(source, generated=text)
        subject = library_subjects(source, into=folder, flags=flags, volatile=volatile)[name]
    subject.judge = judge
    recipe = recipe_of_operations(path, arguments)
    keep_recipe(subject, recipe)
    if judge is not None:
        judge.recipe = recipe
    return subject


def cython_subject(
    source: TestSource,
    type: str,
    methods: Sequence[Method],
    text: str,
    into: Path,
    flags: Sequence[str],
    volatile: str,
) -> Subject:
    """Build the module of a cdef class; an error names the nearest method."""
    from pulsar_ml.harness.functions.cython_tests import built_module

    try:
        _, module = built_module(source, text, into=into, flags=flags, volatile=volatile)
    except BuildError as error:
        reason = misspelt(source.path.read_text(errors="replace"), type, methods)
        words = shortened(str(error))
        if reason:
            words = f"{words}\n\n{source.path.name}: {reason}"
        raise BuildError(words) from None
    subject: Subject = module.SUBJECTS[source.tests[0].name]
    return subject


def read_signatures(
    signatures: Mapping[str, Signature],
) -> tuple[list[Method], dict[str, Mapping[Any, Any] | None]]:
    """Read the operations, and what their results mean."""
    if not 1 <= len(signatures) <= MOST_OPERATIONS:
        raise UsageError(
            f"{len(signatures)} operations; there should be 1 to {MOST_OPERATIONS}, each as "
            'push="bool push(int)"'
        )
    methods = []
    meanings: dict[str, Mapping[Any, Any] | None] = {}
    for operation, value in signatures.items():
        text, meaning = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        nearest = get_close_matches(operation, OPTIONS, 1)
        hint = f"; did you mean {nearest[0]}=?" if nearest else ""
        if not isinstance(text, str) or not (meaning is None or isinstance(meaning, Mapping)):
            raise UsageError(
                f"{operation}={value!r} is neither an option nor a signature such as "
                f'"bool push(int)"{hint}'
            )
        try:
            methods.append(read_method(operation, text))
        except UsageError as error:
            raise UsageError(f"{error}{hint}") from None
        meanings[operation] = meaning
    return methods, meanings


def language_of(path: Path, type: str | None, methods: Sequence[Method]) -> str:
    """The language of the glue: C for C files whose operations are functions, C++ or Cython."""
    if LANGUAGES.get(path.suffix) == "cython":
        return "cython"
    if path.suffix not in C_FILES | C_PLUS_PLUS_FILES:
        known = ", ".join(sorted(C_FILES | C_PLUS_PLUS_FILES | {".pyx"}))
        raise UsageError(f"{path.name} is no file of C, C++ or Cython; its name ends with: {known}")
    free = type is None or all(each.on >= 0 for each in methods)
    if type is None and (with_self := next((each for each in methods if each.on >= 0), None)):
        raise UsageError(
            f'{with_self.operation}="{with_self.text}": self is of no type; name it behind '
            f"{path.name!r}"
        )
    if path.suffix == ".c" and not free:
        raise UsageError('C has no methods; write functions, as push="bool ring_push(self, int)"')
    return "c" if path.suffix in C_FILES and free else "c++"


def roles_of(methods: Sequence[Method], one_thread: Sequence[str | Sequence[str]]) -> list[int]:
    """The role of each operation: 0 for any thread, else the number of its group."""
    if isinstance(one_thread, str):
        one_thread = [one_thread]
    known = [each.operation for each in methods]
    roles = dict.fromkeys(known, 0)
    for number, group in enumerate(one_thread, 1):
        for name in [group] if isinstance(group, str) else group:
            if name not in roles:
                raise UsageError(f"one_thread names {name!r}; {nearest_of(name, known)}")
            roles[name] = number
    return [roles[name] for name in known]


def model_factory(model: Any, methods: Sequence[Method]) -> Callable[[], Any]:
    """A function for the model, which must know every operation with its number of arguments."""
    factory: Callable[[], Any]
    if isinstance(model, str):
        named = model
        model_named(named)
        factory = lambda: model_named(named)  # noqa: E731
    elif inspect.isclass(model) or (callable(model) and not hasattr(model, "init")):
        factory = model
    else:
        factory = lambda: model  # noqa: E731
    built = factory()
    if not (hasattr(built, "init") and hasattr(built, "step")):
        raise UsageError(f"model={model!r} is no model: a model has init() and step()")
    known: Mapping[str, int] = getattr(built, "operations", {})
    for each in methods if known else ():
        own = name_in(built, each.operation)
        if own not in known:
            raise UsageError(
                f"the model has no operation {each.operation!r}; "
                f"{nearest_of(each.operation, list(known))}"
            )
        if known[own] != len(each.arguments):
            raise UsageError(
                f'{each.operation}="{each.text}" has {len(each.arguments)} arguments, and '
                f"{known[own]} in the model"
            )
    return factory


def name_of(path: Path, type: str | None) -> str:
    """The name of the class without namespaces and arguments; of free functions, the file's."""
    if type is None:
        return path.stem
    return type.partition("<")[0].rpartition("::")[2].split()[-1] or path.stem

"""Collects test functions of C, C++ and Cython files as tests of pytest.

Files named ``check_*`` are collected always, for nothing else has such files; others when the
setting ``check_files`` names them, such as ``test_*.cpp``. Each test function is one test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pulsar_ml.harness.functions import LANGUAGES
from pulsar_ml.harness.testing.properties import (
    REPLAYED,
    command_options,
    finish,
    not_again,
)

if TYPE_CHECKING:
    from pulsar_ml.harness.functions.source import TestFunction, TestSource
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.subjects.subject import Subject

SUFFIXES = tuple(LANGUAGES)
ALWAYS = tuple(f"check_*{suffix}" for suffix in SUFFIXES)


def add_settings(parser: pytest.Parser) -> None:
    parser.addini(
        "check_files",
        "C, C++ and Cython files whose functions test_* are tests, beside check_*; as test_*.cpp",
        type="args",
        default=[],
    )
    parser.addini(
        "check_flags",
        "flags of the compiler for all such files, as -Iinclude -std=c++17",
        type="args",
        default=[],
    )


def is_collected(path: Path, config: pytest.Config) -> bool:
    """True for a file whose functions are tests."""
    patterns = (*ALWAYS, *config.getini("check_files"))
    return path.suffix in SUFFIXES and any(fnmatch(path.name, each) for each in patterns)


class SourceFile(pytest.File):
    """A file of test functions. It is built when its first test runs."""

    source: TestSource | None = None
    subjects: dict[str, Subject] | None = None

    def collect(self) -> Iterator[FunctionItem]:
        from pulsar_ml.errors import PulsarMlError
        from pulsar_ml.harness.functions.source import read_source

        try:
            self.source = read_source(self.path)
        except PulsarMlError as error:
            raise self.CollectError(str(error)) from None
        for test in self.source.tests:
            yield FunctionItem.from_parent(self, name=test.name, test=test)

    def subject(self, name: str) -> Subject:
        from pulsar_ml.harness.functions.check import BUILDS, build_tests

        if self.subjects is None:
            assert self.source is not None
            flags = [
                absolute(flag, self.config.rootpath) for flag in self.config.getini("check_flags")
            ]
            self.subjects = build_tests(
                self.source, into=self.config.rootpath / BUILDS, flags=flags
            )
        if name not in self.subjects:
            pytest.skip("the preprocessor leaves this test out")
        return self.subjects[name]


def absolute(flag: str, root: Path) -> str:
    """Make the folder of ``-I`` relative to the root of the tests."""
    return f"-I{root / flag[2:]}" if flag.startswith("-I") else flag


def native_item(collector: pytest.Collector, name: str, value: object) -> NativeItem | None:
    """A test for a function of a checked module that has the marker ``interleave``, or None."""
    marks = [mark for mark in getattr(value, "pytestmark", ()) if mark.name == "interleave"]
    if not marks or not isinstance(collector, pytest.Module):
        return None
    from pulsar_ml.harness.functions.called import is_native
    from pulsar_ml.harness.functions.source import TestFunction

    if not is_native(value):
        return None
    options = {key: word for key, word in marks[0].kwargs.items() if key != "split"}
    test = TestFunction(name, 1, needs_gil=True, options=options)
    item: NativeItem = NativeItem.from_parent(collector, name=name, test=test, function=value)
    return item


class FunctionItem(pytest.Item):
    """One test function."""

    def __init__(self, *, test: TestFunction, **more: Any) -> None:
        super().__init__(**more)
        self.test = test

    def subject(self) -> Subject:
        assert isinstance(self.parent, SourceFile)
        return self.parent.subject(self.name)

    def runtest(self) -> None:
        from pulsar_ml.harness.functions.budget import replacing
        from pulsar_ml.harness.functions.check import EXECUTIONS, explore_test, finish_test
        from pulsar_ml.harness.testing.budget import explored

        subject = self.subject()
        if (recorded := self.config.stash[REPLAYED]) is not None:
            self.replay(recorded, subject)
        options = replacing(self.test.options, command_options(self.config))
        done = explored(self, partial(explore_test, self.test, subject), options, EXECUTIONS)
        finish(self, finish_test(self.path, self.test, subject, done, **options))

    def replay(self, failure: Failure, subject: Subject) -> NoReturn:
        from pulsar_ml.harness.functions.check import replayed_text
        from pulsar_ml.harness.search.interleave import InterleavingFailure

        if failure.subject != subject.name:
            pytest.skip(f"the record is of the test {failure.subject!r}")
        again, text = replayed_text(failure, subject, None)
        if again.failure is not None:
            raise InterleavingFailure(failure, text)
        not_again(again)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from pulsar_ml.errors import PulsarMlError

        if isinstance(excinfo.value, PulsarMlError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.test.line - 1, self.name


class NativeItem(FunctionItem):
    """A function of a checked Cython module, in a test module of Python."""

    def __init__(self, *, function: Callable[[], object], **more: Any) -> None:
        super().__init__(**more)
        self.function = function

    def subject(self) -> Subject:
        from pulsar_ml.harness.functions.called import function_subject

        return function_subject(self.function)

"""Fixtures shared by all folders."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import sys
import sysconfig
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from pulsar_ml.campaign.trial.supervisor import fresh_large_blocks
from pulsar_ml.campaign.trial.trial import load_native
from tests import ROOT
from tests.harness.toys.build_toys import toys_path
from tests.native_modules import unselect_mutants
from tests.spark.session.java import quick_home
from tests.spark.session.one_jvm import OneJvm
from tools.interpreters import executable
from tools.thread_sanitizer import NAME as SANITIZED_PYTHON

# Equal examples in every run, and no limit of time, which a busy machine would meet.
settings.register_profile(
    "pulsar_ml", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pulsar_ml")

# Inherited by every process that tests start: each would wait actively for linear algebra.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Instances of ended tests would stay in pieces of the heap, gigabytes that each fork pays for.
fresh_large_blocks()


@pytest.fixture(scope="session")
def toys_so() -> Path:
    """The shared object of the toy subjects, compiled on first use."""
    return toys_path()


@pytest.fixture(scope="session")
def toys(toys_so: Path) -> ModuleType:
    """The module of the toy subjects."""
    return load_native(str(toys_so))


@pytest.fixture(scope="session")
def spark_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneJvm]:
    """The JVM of all tests whose point is not how a JVM starts or ends."""
    jvm = OneJvm(tmp_path_factory.mktemp("jvm"))
    try:
        yield jvm
    finally:
        jvm.end()


# The longest tests that no group starts first: one of them at the end would run alone.
# The README before the page of failures: they share a JVM and builds of mutants.
LONG = (
    "test_tutorial.py",
    "test_readme.py",
    "test_failures_page.py",
    "test_static.py",
    "test_docs.py",
)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAS_FIBERS:
        left_out = tuple(f"tests/{name}" for name in TESTS_OF_FIBERS)
        items[:] = [item for item in items if not item.nodeid.startswith(left_out)]
    for item in items:
        if item.get_closest_marker("xdist_group") is None and uses_files_of_its_module(item):
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(ROOT).as_posix()))
    names = [*LONG, ""]
    items.sort(key=lambda item: names.index(item.path.name if item.path.name in LONG else ""))


def uses_files_of_its_module(item: pytest.Item) -> bool:
    """True for a test with files that each process would make anew for the tests of a module."""
    known = getattr(item, "_fixtureinfo", None)
    return known is not None and any(
        fixture.scope == "module" and "tmp_path_factory" in fixture.argnames
        for fixtures in known.name2fixturedefs.values()
        for fixture in fixtures
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Distribute tests by a scheduler that is quick with many of them."""
    from tests.scheduling import scheduler_for

    return scheduler_for(config, log)


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over what thousands of tests and modules hold."""
    gc.collect()
    gc.freeze()


# Without the GIL a collection begins when there are a quarter more objects than before, and what
# tests leave in cycles may have gigabytes of native memory by then.
TESTS_OF_COLLECTION = 50 if sysconfig.get_config_var("Py_GIL_DISABLED") else 0
TESTS_ENDED = itertools.count(1)


def pytest_runtest_logfinish() -> None:
    if TESTS_OF_COLLECTION and next(TESTS_ENDED) % TESTS_OF_COLLECTION == 0:
        gc.collect()


def pytest_runtest_teardown() -> None:
    unselect_mutants()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run tests with Spark, and their fixtures, with a Java that starts at less cost."""
    group = item.get_closest_marker("xdist_group")
    home = quick_home() if group is not None and group.args == ("spark",) else None
    if home is None:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(home))
        return (yield)


# A job in the background of a shell ignores interrupts, and so would every process that a test
# starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The project needs a C compiler only. What checks strangers' C++ code needs one for C++ too.
HAS_CXX = shutil.which(os.environ.get("CXX", "c++")) is not None
collect_ignore = (
    []
    if HAS_CXX
    else [
        "engine/locks",
        "engine/strangers",
        "functions/test_language.py",
        "functions/test_operations.py",
        "functions/test_projects.py",
        "third_party/test_checked.py",
    ]
)


NEEDS_CLANG = "engine/strangers/test_clang.py"
HAS_CLANG = shutil.which("clang") is not None
if not HAS_CLANG:
    collect_ignore.append(NEEDS_CLANG)

NEEDS_CROSS = "memory_model/arm/test_a64.py"
HAS_CROSS = shutil.which("aarch64-linux-gnu-gcc") is not None
if not HAS_CROSS:
    collect_ignore.append(NEEDS_CROSS)

NEEDS_BROWSER = [
    f"report/{name}_browser.py" for name in ("test", "test_history", "execution/test_lanes")
]
HAS_BROWSER = all(shutil.which(name) for name in ("chromium", "chromedriver"))
if not HAS_BROWSER:
    collect_ignore.extend(NEEDS_BROWSER)

# What starts gdb on a replay; elsewhere the page of failures is followed without those commands.
NEEDS_GDB = "engine/replays/test_gdb.py"
HAS_GDB = shutil.which("gdb") is not None
if not HAS_GDB:
    collect_ignore.append(NEEDS_GDB)

# Python threads under the engine need frames of CPython 3.11 to 3.14, without a GIL of 3.14.
NEEDS_FIBERS = ["pythreads", "managed_ledger/interleaved", "free_threading/test_page.py"]
TESTS_OF_FIBERS = (
    "test_tutorial.py::test_from_a_python_function_to_a_deadlock",
    "functions/test_source.py::test_options_of_a_file_in_python_are_obeyed",
)
OLDEST = (3, 14) if sysconfig.get_config_var("Py_GIL_DISABLED") else (3, 11)
HAS_FIBERS = OLDEST <= sys.version_info[:2] <= (3, 14)
if not HAS_FIBERS:
    collect_ignore.extend(NEEDS_FIBERS)

# Interpreters without the GIL have no wheel of it.
NEEDS_DUCKDB = ["report/test_analysis.py", "spark/test_analysis.py"]
HAS_DUCKDB = find_spec("duckdb") is not None
if not HAS_DUCKDB:
    collect_ignore.extend(NEEDS_DUCKDB)

# The interpreter without the GIL that is built for the thread sanitizer.
NEEDS_SANITIZED_PYTHON = "free_threading/sanitizer"
HAS_SANITIZED_PYTHON = executable(SANITIZED_PYTHON).exists()
if not HAS_SANITIZED_PYTHON:
    collect_ignore.append(NEEDS_SANITIZED_PYTHON)

# Builds of projects as strangers have them; each needs its tools, which the extra "test" brings.
TOOLS = {
    "cmake": ("cmake", "ninja"),
    "meson": ("mesonbuild", "ninja"),
    "scikit": ("scikit_build_core", "cmake", "ninja"),
}
PROJECT_TOOLS = [
    name for name, tools in TOOLS.items() if all(shutil.which(t) or find_spec(t) for t in tools)
]
NO_PROJECTS = [f"{name} ({', '.join(TOOLS[name])})" for name in TOOLS if name not in PROJECT_TOOLS]


def pytest_report_header() -> list[str]:
    cxx = (
        "C++ compiler: found"
        if HAS_CXX
        else f"no C++ compiler: left out are {', '.join(collect_ignore)}"
    )
    return [
        cxx,
        "Clang: found"
        if HAS_CLANG
        else f"no Clang: left out are {NEEDS_CLANG} and the programs of engine/locks by Clang",
        "compiler for aarch64: found"
        if HAS_CROSS
        else f"no aarch64-linux-gnu-gcc: left out are the tests of {NEEDS_CROSS}",
        "browser: found"
        if HAS_BROWSER
        else f"no chromium with its driver: left out are {', '.join(NEEDS_BROWSER)}",
        "gdb: found"
        if HAS_GDB
        else f"no gdb: left out are {NEEDS_GDB} and the commands with --gdb of docs/failures.md",
        "Python threads under the engine: supported"
        if HAS_FIBERS
        else f"no Python threads under the engine: left out are "
        f"{', '.join((*NEEDS_FIBERS, *TESTS_OF_FIBERS))}",
        "DuckDB: found" if HAS_DUCKDB else f"no DuckDB: left out are {', '.join(NEEDS_DUCKDB)}",
        f"{SANITIZED_PYTHON}: found"
        if HAS_SANITIZED_PYTHON
        else f"no {SANITIZED_PYTHON}: left out are {NEEDS_SANITIZED_PYTHON}",
        f"projects left out, as tools are missing: {'; '.join(NO_PROJECTS)}"
        if NO_PROJECTS
        else f"projects: {', '.join(PROJECT_TOOLS)}",
    ]

"""Builds the checked twin of a whole project: one of setuptools, or of scikit-build-core.

The project's own build runs, with the flags of a checked build added to those of its extensions.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from pulsar_ml.errors import BuildError, UsageError
from pulsar_ml.extras import require
from pulsar_ml.harness.building.checked import (
    COMPILE_FLAGS,
    LATER_CLANG,
    LINK_FLAGS,
    MACROS,
    OF_LATER_CLANG,
    flags_of,
)
from pulsar_ml.harness.building.disk import full_disk
from pulsar_ml.harness.building.pyproject import NAME, read_pyproject

SETUPTOOLS, SCIKIT = "setuptools", "scikit-build-core"

# Runs setup.py with every extension replaced by its twin.
SETUP = """
import json, runpy, sys
from setuptools.command.build_ext import build_ext
from pulsar_ml.harness.building.checked import checked_extension
volatile, base = json.loads(sys.argv[1])
build = build_ext.build_extension
def build_twin(command, extension):
    build(command, checked_extension(extension, volatile=volatile))
build_ext.build_extension = build_twin
sys.argv = ["setup.py", "-q", "build", "--build-base", base]
sys.path.insert(0, "")
try:
    runpy.run_path("setup.py", run_name="__main__")
except FileNotFoundError:
    import setuptools
    setuptools.setup()
"""


def build_project(folder: Path, *, into: Path, volatile: str = "plain") -> list[Path]:
    """Build the checked twin of the project in ``folder``; return the paths of its extensions.

    The twin is below ``into``, in a tree of its own. Load an extension by :func:`load_checked`.
    Raises UsageError for a folder without a project that can be built so, and BuildError with the
    output of the build.
    """
    folder = folder.resolve()
    kind = backend_of(folder)
    home = Path(into).resolve() / f"{folder.name}-checked"
    home.mkdir(parents=True, exist_ok=True)
    if kind == SETUPTOOLS:
        require("build", "setuptools", purpose=f"building {folder.name}")
        command = [sys.executable, "-c", SETUP, json.dumps([volatile, str(home)])]
    else:
        require("build", "pip", purpose=f"building {folder.name}")
        flags = home / "checked.cmake"
        flags.write_text(cmake_flags(volatile))
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--upgrade", "--target", str(home / "tree")),
            *("--config-settings", f"cmake.define.CMAKE_PROJECT_INCLUDE={flags}"),
            *("--config-settings", "install.strip=false", str(folder)),
        ]
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="surrogateescape",
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or "." for entry in sys.path)},
    )
    built = sorted(
        path
        for suffix in importlib.machinery.EXTENSION_SUFFIXES
        for path in home.rglob(f"*{suffix}")
        if path.is_file()
    )
    built = list(dict.fromkeys(built))
    if done.returncode or not built:
        refused = full_disk(done.stdout, home)
        if refused is not None:
            raise refused
        words = done.stdout.rstrip() or "the build made no extension module"
        raise BuildError(f"building {folder} failed:\n{words}")
    return built


def backend_of(folder: Path) -> str:
    """The kind of build that a project has. UsageError when it is another one, or none."""
    settings = folder / NAME
    backend = ""
    if settings.is_file():
        system = read_pyproject(settings).get("build-system")
        backend = str(system.get("build-backend", "")) if isinstance(system, dict) else ""
    if backend.startswith("scikit_build_core"):
        return SCIKIT
    if (folder / "setup.py").is_file() or backend.startswith("setuptools"):
        return SETUPTOOLS
    found = f"its build backend is {backend!r}" if backend else "it has no setup.py"
    raise UsageError(
        f"{folder}: {found}; a project of setuptools or scikit-build-core can be built checked, and "
        "for another one docs/checked-builds.md has the flags"
    )


def cmake_flags(volatile: str) -> str:
    """A file for CMAKE_PROJECT_INCLUDE: the flags of a checked build for each library."""
    libraries = ("MODULE_LIBRARY", "SHARED_LIBRARY")
    kind = "$<TARGET_PROPERTY:TYPE>"
    is_library = f"$<OR:{','.join(f'$<STREQUAL:{kind},{each}>' for each in libraries)}>"
    is_later = f"$<VERSION_GREATER_EQUAL:$<{{0}}_COMPILER_VERSION>,{LATER_CLANG}>"
    flags = {
        "$<COMPILE_LANG_AND_ID:{0},GNU>": flags_of(volatile, clang=0),
        "$<COMPILE_LANG_AND_ID:{0},Clang>": flags_of(volatile, clang=1),
        f"$<AND:$<COMPILE_LANG_AND_ID:{{0}},Clang>,{is_later}>": OF_LATER_CLANG,
    }
    # CMake leaves out a word that it has met; the two words of an option are one behind SHELL.
    own = [
        f'add_compile_options("SHELL:$<{condition.format(language)}:{flag}>")'
        for language in ("C", "CXX")
        for condition, words in flags.items()
        for flag in re.findall(r"-mllvm \S+|-Xclang \S+|\S+", " ".join(words))
    ]
    return "\n".join(
        [
            "# Written by pulsar_ml: the flags of a checked build.",
            f"add_compile_options({' '.join(COMPILE_FLAGS)})",
            *own,
            f"add_compile_definitions({' '.join(f'{name}={value}' for name, value in MACROS)})",
            *(f'add_link_options("$<{is_library}:{flag}>")' for flag in LINK_FLAGS),
            "set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)",
            "",
        ]
    )

"""Builds a file of C or C++ tests into a checked library, without Python or Cython in it.

A generated file includes the user's and a table of its tests. The build is kept in a folder, with
the list of all files that it read: it is made again when one of them, a flag, the compiler or the
engine changed.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pulsar_ml.errors import BuildError
from pulsar_ml.harness.building.build import engine_identity, only_one_process
from pulsar_ml.harness.building.checked import LINK_FLAGS, MACROS, checked_flags
from pulsar_ml.harness.building.disk import full_disk
from pulsar_ml.harness.building.unseen import warn_of_unseen_code
from pulsar_ml.harness.functions.source import C_TEST, TestSource, blank
from pulsar_ml.harness.subjects.subject import Subject, subject_at

PACKAGE = Path(__file__).resolve().parents[3]
# GCC names an unknown -Wno- flag, one of ours for Clang, beside the errors of a file.
ABOUT_OUR_FLAGS = re.compile(
    r"^(At (global scope|top level):\n)?.*: unrecognized command-line option .-Wno-.*\n?",
    re.MULTILINE,
)
# The generated file includes the user's; its line above an error says nothing.
ABOUT_OUR_FILE = re.compile(
    r"^In file included from [^\n]*/(?:tests|operations)\.c(?:pp)?:\d+:\n"
    r"|,\n +from [^\n]*/(?:tests|operations)\.c(?:pp)?:\d+(?=:\n)",
    re.MULTILINE,
)
STANDARD = {"c": "-std=gnu17", "c++": "-std=gnu++20"}
GLOBALS = Path(__file__).with_name("globals.c")
AREAS = GLOBALS.with_name("areas.h")
CONSTRUCTORS = Path(__file__).with_name("globals.ld")
LOADED: set[Path] = set()  # libraries whose global variables were kept as they were when loaded
COMPILERS = {"c": ("CC", "cc"), "c++": ("CXX", "c++")}


def library_subjects(
    source: TestSource, *, into: Path, flags: Sequence[str] = (), volatile: str = "plain"
) -> dict[str, Subject]:
    """Build the tests of a C or C++ file for the engine; return a subject for each test's name.

    A test that the preprocessor leaves out has none. ``into`` is the folder of builds, ``flags`` go
    to the compiler. Raises BuildError with the compiler's output, and when there is no compiler.
    """
    import pulsar_ml.harness.engine  # noqa: F401  (its symbols are what the library calls)

    path, names = build_library(source, into=into, flags=flags, volatile=volatile)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(
            f"{source.path.name} was built and cannot be loaded: {error}; include the source that "
            "defines it, or name its library (--flag=-lNAME)"
        ) from None
    if source.checked and path not in LOADED:
        if library.pml_keep_globals():
            raise BuildError(f"{source.path.name}: no memory for the values of its globals")
        warn_of_unseen_code(path)
        LOADED.add(path)
    tables = (ctypes.c_void_p * len(names)).in_dll(library, "pml_tests")
    return {
        name: subject_at(address, path.parent.name, library)
        for name, address in zip(names, tables, strict=True)
    }


def build_library(
    source: TestSource, *, into: Path, flags: Sequence[str], volatile: str = "plain"
) -> tuple[Path, list[str]]:
    """Compile and link unless that was done before; return the library's path and its tests."""
    variable, default = COMPILERS[source.language]
    compiler = shlex.split(os.environ.get(variable) or default)
    found = shutil.which(compiler[0])
    if found is None:
        raise BuildError(
            f"there is no compiler {compiler[0]!r} for {source.path.name}; install one, or name it "
            f"in the environment variable {variable}"
        )
    command = [
        *compiler,
        STANDARD[source.language],
        "-fPIC",
        "-pthread",
        "-fno-strict-aliasing",
        *flags,
        *source.flags,
        f"-I{source.path.parent}",
        f"-I{PACKAGE}",
    ]
    if source.checked:
        command += checked_flags(volatile, compiler)
        command += (f"-D{name}={value}" for name, value in MACROS)
    else:
        command += ["-O2", "-g", "-DPML_PLAIN"]
    if source.language == "c":
        command.append("-Werror=implicit-function-declaration")
    facts = os.stat(found)
    key = hashlib.sha256(engine_identity())
    key.update(b"".join(path.read_bytes() for path in (GLOBALS, AREAS, CONSTRUCTORS)))
    names = [test.name for test in source.tests]
    key.update(
        repr((command, source.path, names, found, facts.st_size, facts.st_mtime_ns)).encode()
    )
    key.update(os.fsencode(source.generated))
    home = Path(into).resolve() / f"{source.path.stem}-{key.hexdigest()[:12]}"
    with only_one_process(home):
        built = kept(home)
        if built is None:
            compile_and_link(home, command, source)
            built = kept(home)
    if built is None:
        raise BuildError(f"{source.path} or a header changed while it was built; build it again")
    return built


def unit(source: TestSource, names: Sequence[str]) -> str:
    """The generated file: the user's, the glue, and the table of the tests called ``names``."""
    if source.generated:
        return source.generated
    scopes = {test.name: test.scope for test in source.tests}
    linkage = 'extern "C" ' if source.language == "c++" else ""
    tables = ", ".join(f"&pml_subject_{name}" for name in names)
    return "\n".join(
        [
            f'#include "{source.path}"',
            '#include "pulsar_ml/harness/functions/glue.h"',
            *(f"PML_TEST({name}, {scopes[name]}{name})" for name in names),
            f'{linkage}__attribute__((visibility("default"), used))',
            f"const PmlSubject *const pml_tests[] = {{{tables}}};",
            "",
        ]
    )


def present_tests(source: TestSource, command: Sequence[str]) -> list[str]:
    """The names of the tests that the preprocessor leaves in the file."""
    names = [test.name for test in source.tests]
    if not source.has_conditions:
        return names
    done = subprocess.run(
        [*command, "-E", str(source.path)],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    if done.returncode:
        return names  # the compiler will say why
    present = {match["name"] for match in C_TEST.finditer(blank(done.stdout, source.language))}
    return [name for name in names if name in present]


def compile_and_link(home: Path, command: Sequence[str], source: TestSource) -> None:
    kind = "operations" if source.generated else "tests"
    generated = home / f"{kind}{'.c' if source.language == 'c' else '.cpp'}"
    names = present_tests(source, command)
    if not names:
        raise BuildError(f"{source.path}: its conditions (#if) leave no test; name a flag for them")
    generated.write_text(unit(source, names), "utf-8", errors="surrogateescape")
    reads, compiled, linked = home / "tests.d", home / "tests.o", home / "linked.so"
    kept_globals = home / "globals.o"
    run(
        [*command, "-MMD", "-MF", str(reads), "-c", str(generated), "-o", str(compiled)],
        source,
        home,
    )
    libraries = [flag for flag in command if flag.startswith(("-l", "-L", "-Wl,"))]
    output = ["-o", str(linked), *libraries]
    # Without the sanitizer's flag: the engine takes the place of its runtime.
    compiler = command[: command.index(STANDARD[source.language])]
    if source.checked:
        own = ["-x", "c", "-O2", "-fPIC", f"-I{PACKAGE}", "-c", str(GLOBALS)]
        run([*compiler, *own, "-o", str(kept_globals)], source, home)
        output = [str(kept_globals), *output, f"-Wl,-T,{CONSTRUCTORS}", *LINK_FLAGS]
    run([*compiler, "-shared", "-pthread", str(compiled), *output], source, home)
    # Another path for other code: a process that has loaded the old one loads the new one, too.
    # Its name is the build id, which differs for another engine, too: the home's name has that.
    folder = home / hashlib.sha256(home.name.encode() + linked.read_bytes()).hexdigest()[:12]
    folder.mkdir(exist_ok=True)
    os.replace(linked, folder / f"{source.path.stem}.so")
    state = {
        "library": f"{folder.name}/{source.path.stem}.so",
        "tests": names,
        "files": {file: state_of(file) for file in read_files(reads) if file != str(generated)},
    }
    (home / "state.json").write_text(json.dumps(state))


def run(command: Sequence[str], source: TestSource, home: Path) -> None:
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    if done.returncode:
        refused = full_disk(done.stdout, home)
        if refused is not None:
            raise refused
        words = ABOUT_OUR_FILE.sub("", ABOUT_OUR_FLAGS.sub("", done.stdout)).rstrip()
        raise BuildError(f"building {source.path} failed:\n{words}")


def read_files(rule: Path) -> list[str]:
    """The files that a compilation read, from the rule for make that the compiler wrote."""
    _, _, names = os.fsdecode(rule.read_bytes()).partition(":")
    kept = {"\\\n": " ", "\\ ": "\0", "\\#": "#", "$$": "$"}
    for written, meant in kept.items():
        names = names.replace(written, meant)
    return [name.replace("\0", " ") for name in names.split()]


def state_of(file: str) -> list[int]:
    facts = os.stat(file)
    return [facts.st_size, facts.st_mtime_ns]


def kept(home: Path) -> tuple[Path, list[str]] | None:
    """The library of an earlier build and its tests, unless a file that it read has changed."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        state = json.loads((home / "state.json").read_text())
        library = home / str(state["library"])
        if library.exists() and all(state_of(f) == known for f, known in state["files"].items()):
            return library, [str(name) for name in state["tests"]]
    return None

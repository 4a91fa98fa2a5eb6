"""Extensions of pulsar_ml and their build variants. Metadata lives in pyproject.toml.

Environment:
    CC, CFLAGS, LDFLAGS the compiler and more flags, such as ``CFLAGS=-flto LDFLAGS=-flto``.
    PULSAR_ML_SANITIZE  thread, address, undefined or address,undefined: compile what suites run,
                        instrumented; tools/sanitized.py adds the other extensions. Use one
                        ``--build-base`` per variant, or each build replaces the other.
    PULSAR_ML_OPTIMIZE  the compiler's level of optimisation, 0 to 3, in place of the usual one.
    PULSAR_ML_ONLY      the name of an extension: build no other one.
    PULSAR_ML_STRICT    1: warnings of the C compiler and Cython's performance hints are errors.

An extension is compiled again when a source, the compiler or a flag is another one. Extensions are
translated and compiled side by side, one on each processor that this process may use; ``build_ext
--parallel 1`` compiles one after the other.
"""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import runpy
import shlex
import sys
import sysconfig
import tempfile
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler.Errors import CompileError
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
SANITIZE = os.environ.get("PULSAR_ML_SANITIZE", "")
OPTIMIZE = os.environ.get("PULSAR_ML_OPTIMIZE", "")
ONLY = os.environ.get("PULSAR_ML_ONLY", "")
STRICT = os.environ.get("PULSAR_ML_STRICT", "") == "1"
PROCESSORS = len(os.sched_getaffinity(0))

SANITIZER_FLAGS = {
    # Python's own flags have -g, which takes a quarter of the compiler's time and most of the size.
    "": ["-g0"],
    # GCC warns that its own runtime does not model fences; the structures keep every field that is
    # read beside a fence atomic, so nothing depends on them there.
    "thread": ["-O1", "-fsanitize=thread", "-g1", "-Wno-error=tsan", "-Wno-tsan"],
    "address": ["-O1", "-fsanitize=address", "-g1", "-fno-omit-frame-pointer"],
    # Clang reports the address of a null pointer's member, by which pools learn distances; an
    # access there ends the process by itself.
    "undefined": [
        *("-O1", "-fsanitize=undefined", "-g1"),
        *("-fno-sanitize-recover=undefined", "-fno-sanitize=null"),
    ],
}
SANITIZER_FLAGS["address,undefined"] = SANITIZER_FLAGS["address"] + SANITIZER_FLAGS["undefined"]

# No suite runs them, or instrumented code calls them.
NOT_SANITIZED = {
    "pulsar_ml._core",
    "pulsar_ml.harness.functions._called",
    "pulsar_ml.harness.engine._engine",
    "pulsar_ml.harness.pythreads._fibers",
}

# Modules in Python that are compiled as they are, for the time that a check of a short history
# takes beside its search. They run uncompiled as well; where they are compiled, a change of one
# needs a build.
COMPILED = tuple(
    f"pulsar_ml.harness.linearize.{name}"
    for name in ("check", "checker", "effort", "parts.guide", "searches", "shipped", "verdict")
)

# They take the longest, so they come first.
LARGE = (
    "pulsar_ml._core",
    "pulsar_ml.operations._native",
    "pulsar_ml.operations._checked",
    "pulsar_ml.harness.engine._engine",
)

DIRECTIVES = {
    "language_level": "3",
    "cdivision": True,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "auto_pickle": False,
    "autotestdict": False,
    "binding": True,
    "embedsignature": False,
    # Importing an extension that does not declare this turns the GIL on.
    "freethreading_compatible": True,
}
# What an interpreter does: indices are checked, and annotations are no types.
AS_PYTHON = {
    "language_level": "3",
    "annotation_typing": False,
    "freethreading_compatible": True,
}


# A build is another one when any of these changes: native sources, flags (here and in
# building/checked.py and inlining.py), programs, models, judges and suites.
NATIVE = {".c", ".h", ".pxd", ".pxi", ".pyx"}
PYTHON = ("program.py", "checked.py", "inlining.py", "judge.py", "plain.py")
FOLDERS = ("specs", "models", "suites")

# Commands that need no extensions. pip runs the last two before each build.
UNBUILT = {"clean", "egg_info", "dist_info"}


def is_source(path: Path) -> bool:
    """Returns true if a change of this file makes another build."""
    if path.suffix in NATIVE:
        return path.suffix != ".c" or not any(
            path.with_suffix(suffix).exists() for suffix in (".pyx", ".py")
        )
    if path.suffix != ".py":
        return False
    return path.name in PYTHON or path.parent.name in FOLDERS


def build_id() -> str:
    """Twelve hexadecimal digits that change with each source, flag and variant."""
    digest = hashlib.sha256(f"{SANITIZE} {OPTIMIZE} {os.environ.get('CFLAGS', '')}".encode())
    for path in sorted((ROOT / "pulsar_ml").rglob("*")):
        if is_source(path):
            digest.update(path.relative_to(ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:12]


def level() -> list[str]:
    """The flag of PULSAR_ML_OPTIMIZE, which goes behind others."""
    return [f"-O{OPTIMIZE}"] if OPTIMIZE else []


@functools.cache
def of_clang() -> list[str]:
    """Clang compares the types of functions too, which Cython casts to those that Python calls."""
    if "undefined" not in SANITIZE:
        return []
    checked = runpy.run_path(str(ROOT / "pulsar_ml" / "harness" / "building" / "checked.py"))
    compiler = tuple(checked["compiler_of"]("c"))
    return ["-fno-sanitize=function"] if checked["clang_version"](compiler) else []


def extension(name: str, **options: object) -> Extension:
    flags = ["-O3", "-std=gnu11", "-Wall", "-Wextra", "-fno-strict-aliasing"]
    flags += SANITIZER_FLAGS[SANITIZE] + of_clang()
    flags += level()
    if name in COMPILED:
        flags.append("-w")  # GCC warns of the C that Cython writes; mypy checks the sources
    elif STRICT:
        flags.append("-Werror")
    link = [flag for flag in SANITIZER_FLAGS[SANITIZE] if flag.startswith("-fsanitize")]
    return Extension(
        name,
        [name.replace(".", "/") + (".py" if name in COMPILED else ".pyx")],
        include_dirs=["."],
        extra_compile_args=flags,
        extra_link_args=link,
        **options,
    )


def inlined(module: Extension) -> Extension:
    # The product's code; sanitizers are no faster for it.
    if not SANITIZE:
        path = ROOT / "pulsar_ml" / "harness" / "building" / "inlining.py"
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        module.extra_compile_args += runpy.run_path(str(path))["inlining_flags"](compiler)
    return module


def checked_extension(module: Extension) -> Extension:
    # By path: importing the package would need the extensions that are about to be built.
    path = ROOT / "pulsar_ml" / "harness" / "building" / "checked.py"
    module = runpy.run_path(str(path))["checked_extension"](module)
    module.extra_compile_args += level()  # behind the level of a checked build
    return module


def engine_extension() -> Extension:
    # Never instrumented: instrumented code calls it. Only the symbols of its hooks are visible.
    wide = ["-march=x86-64-v2"] if sysconfig.get_platform() == "linux-x86_64" else []
    return Extension(
        "pulsar_ml.harness.engine._engine",
        ["pulsar_ml/harness/engine/_engine.pyx", "pulsar_ml/harness/engine/engine.c"],
        include_dirs=["."],
        depends=[str(path) for path in Path("pulsar_ml/harness/engine").rglob("[a-z]*.[ch]")],
        extra_compile_args=[
            "-O3",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-fno-strict-aliasing",
            "-fvisibility=hidden",
            "-fexceptions",  # of C++ code under test, which pass through pthread_once
            "-g0",
        ]
        + wide
        + level()
        + (["-Werror"] if STRICT else []),
        libraries=["pthread", "m"],
    )


def fibers_extension() -> Extension:
    # It calls the engine, which is loaded before it with its symbols visible.
    native = "pulsar_ml/harness/pythreads/native"
    return Extension(
        "pulsar_ml.harness.pythreads._fibers",
        [f"{native}/module.c"],
        include_dirs=["."],
        depends=[str(path) for path in Path("pulsar_ml/harness/pythreads").rglob("[a-z]*.[ch]")],
        extra_compile_args=[
            "-O2",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Wno-unknown-warning-option",  # for Clang, which has no -Wclobbered
            "-Wno-clobbered",
            "-Wno-missing-field-initializers",
            "-fno-strict-aliasing",
            "-g0",
        ]
        + level()
        + (["-Werror"] if STRICT else []),
    )


def checked_operations() -> list[Extension]:
    if SANITIZE or not (ROOT / "pulsar_ml" / "operations" / "_checked.pyx").exists():
        return []  # Tests of the build have trees of one module.
    return [
        checked_extension(
            extension(
                "pulsar_ml.operations._checked",
                define_macros=[("PML_FAULTS", "1"), ("PML_BUILD_ID", f'"{build_id()}"')],
            )
        )
    ]


def extensions() -> list[Extension]:
    found = [
        inlined(extension("pulsar_ml._core")),
        extension("pulsar_ml.harness.subjects.subject"),
        extension("pulsar_ml.harness.functions._called"),
        extension("pulsar_ml.harness.models.copies"),
        extension("pulsar_ml.harness.models.sequential"),
        extension("pulsar_ml.harness.subjects.threads", libraries=["pthread"]),
        extension("pulsar_ml.harness.histories._lines"),
        extension("pulsar_ml.harness.linearize.search._answers"),
        extension("pulsar_ml.harness.linearize.search._native"),
        extension("pulsar_ml.harness.linearize._monitors"),
        extension("pulsar_ml.harness.linearize.limits._alarm"),
        extension("pulsar_ml.harness.linearize.limits._memory"),
        extension("pulsar_ml.harness.linearize.cells._cells"),
        extension("pulsar_ml.harness.linearize.cells._parts"),
        extension("pulsar_ml.harness.linearize.cells._maps"),
        extension("pulsar_ml.harness.linearize.objects._objects"),
        extension(
            "pulsar_ml.operations._native",
            define_macros=[("PML_FAULTS", "1"), ("PML_BUILD_ID", f'"{build_id()}"')],
        ),
        *map(extension, COMPILED),
        engine_extension(),
        fibers_extension(),
    ]
    if SANITIZE and not ONLY:
        left_out = NOT_SANITIZED | {*COMPILED}
        found = [module for module in found if module.name not in left_out]
    # Tests of the build have trees of one module.
    return [module for module in found if (ROOT / module.sources[0]).exists()]


def translated(modules: list[Extension]) -> tuple[list[Extension], str]:
    """The modules with C sources, and the messages of Cython; no modules if Cython fails.

    Runs in a process of its own, whose standard error goes into a file: Cython's own processes
    write to it as well.
    """
    kinds = [
        (DIRECTIVES, [module for module in modules if module.name not in COMPILED]),
        (AS_PYTHON, [module for module in modules if module.name in COMPILED]),
    ]
    found: list[Extension] = []
    with tempfile.TemporaryFile("w+") as messages:
        os.dup2(messages.fileno(), 2)
        try:
            for directives, of_kind in kinds:
                found += cythonize(  # type: ignore[no-untyped-call]
                    of_kind,
                    compiler_directives=directives,
                    include_path=["."],
                    force=STRICT,
                    # Warnings and reports of the engine and of sanitizers name lines of .pxd files.
                    emit_linenums=True,
                    nthreads=PROCESSORS,
                )
        except CompileError:
            found = []
        messages.seek(0)
        return found, messages.read()


def present(modules: list[Extension]) -> bool:
    """Returns true if all C sources are newer than all native sources, so that Cython has no work.

    Cython itself needs seconds to find that out.
    """
    sources = [Path(source) for module in modules for source in module.sources]
    generated = [path.with_suffix(".c") for path in sources if path.suffix in {".pyx", ".py"}]
    written = [path for path in Path("pulsar_ml").rglob("*") if path.suffix in NATIVE]
    written = [*filter(is_source, written), *(path for path in sources if path.suffix == ".py")]
    newest = max(path.stat().st_mtime for path in written)
    return all(path.exists() and path.stat().st_mtime > newest for path in generated)


def started(modules: list[Extension]) -> Connection:
    """Starts a process that translates modules; the connection gets its result.

    The process is forked, because functions of this file cannot be pickled when pip runs it.
    """
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    fork.Process(target=lambda: send.send(translated(modules))).start()
    send.close()
    return receive


def cythonized() -> list[Extension]:
    if SANITIZE not in SANITIZER_FLAGS:
        raise SystemExit(
            f"PULSAR_ML_SANITIZE={SANITIZE!r} is not known; use one of: "
            f"{', '.join(name for name in SANITIZER_FLAGS if name.isalpha())}"
        )
    modules = sorted(
        [*checked_operations(), *extensions()], key=lambda module: module.name not in LARGE
    )
    modules = [module for module in modules if ONLY in {"", module.name}]
    if not STRICT and present(modules):
        for module in modules:
            module.sources[0] = str(Path(module.sources[0]).with_suffix(".c"))
        return modules
    try:
        found, messages = started(modules).recv()
    except EOFError:
        raise SystemExit("a process of Cython ended without a result; see above") from None
    sys.stderr.write(messages)
    if not found:
        raise SystemExit("Cython does not accept a source; see above")
    if STRICT and "performance hint" in messages:
        raise SystemExit("a performance hint of Cython is an error in a strict build; see above")
    return sorted(found, key=lambda module: module.name not in LARGE)


class BuildExtensions(build_ext):  # type: ignore[misc]
    """Compiles on all processors, and prints which extensions are being compiled."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel: int | bool = self.parallel or PROCESSORS
        self.lock = threading.Lock()
        self.active: list[str] = []
        self.done = 0

    def flags_file(self, ext: Extension) -> str:
        """A file that is newer than an extension which other flags or another compiler made.

        The number of a build is none of the flags, nor is what makes errors of warnings.
        """
        commands = self.compiler.compiler_so, self.compiler.linker_so
        macros = [macro for macro in ext.define_macros if macro[0] != "PML_BUILD_ID"]
        flags = [flag for flag in ext.extra_compile_args if flag != "-Werror"]
        now = "\n".join(map(str, (*commands, macros, flags, ext.extra_link_args)))
        file = Path(self.build_temp, f"{ext.name}.flags")
        if not file.exists() or file.read_text() != now:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(now)
        return str(file)

    def build_extension(self, ext: Extension) -> None:
        name = ext.name.removeprefix("pulsar_ml.")
        ext.depends = [*ext.depends, self.flags_file(ext)]
        with self.lock:
            self.active.append(name)
            self.print_progress()
        super().build_extension(ext)
        with self.lock:
            self.active.remove(name)
            self.done += 1
            self.print_progress()

    def print_progress(self) -> None:
        active = ", ".join(self.active) or "nothing"
        print(f"{self.done} of {len(self.extensions)} compiled; compiling {active}", flush=True)


if __name__ == "__main__":
    setup(
        ext_modules=cythonized() if UNBUILT.isdisjoint(sys.argv) else [],
        cmdclass={"build_ext": BuildExtensions},
    )

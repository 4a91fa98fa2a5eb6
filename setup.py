"""Extensions of pulsar_ml and their build variants. Metadata lives in pyproject.toml.

Environment:
    PULSAR_ML_SANITIZE  thread, address or undefined: instrument every extension. Use one
                        ``--build-base`` per variant: changed flags alone rebuild nothing.
    PULSAR_ML_STRICT    1: warnings of the C compiler and Cython's performance hints are errors.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import runpy
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
SANITIZE = os.environ.get("PULSAR_ML_SANITIZE", "")
STRICT = os.environ.get("PULSAR_ML_STRICT", "") == "1"

SANITIZER_FLAGS = {
    "": [],
    # GCC warns that its own runtime does not model fences; the structures keep every field that is
    # read beside a fence atomic, so nothing depends on them there.
    "thread": ["-fsanitize=thread", "-g", "-Wno-error=tsan", "-Wno-tsan"],
    "address": ["-fsanitize=address", "-g", "-fno-omit-frame-pointer"],
    "undefined": ["-fsanitize=undefined", "-g", "-fno-sanitize-recover=undefined"],
}

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
}


# A build is another one when any of these changes: native sources, flags (here and in
# building/checked.py), programs, models, judges and suites.
NATIVE = {".c", ".h", ".pxd", ".pxi", ".pyx"}
PYTHON = ("program.py", "checked.py", "judge.py", "plain.py")
FOLDERS = ("specs", "models", "suites")


def is_source(path: Path) -> bool:
    """Whether a change of the file at ``path`` makes another build."""
    if path.suffix in NATIVE:
        return not (path.suffix == ".c" and path.with_suffix(".pyx").exists())
    if path.suffix != ".py":
        return False
    return path.name in PYTHON or path.parent.name in FOLDERS


def build_id() -> str:
    """Twelve hexadecimal digits that change with each source, flag and variant."""
    digest = hashlib.sha256(f"{SANITIZE} {os.environ.get('CFLAGS', '')}".encode())
    for path in sorted((ROOT / "pulsar_ml").rglob("*")):
        if is_source(path):
            digest.update(path.relative_to(ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:12]


def extension(name: str, **options: object) -> Extension:
    flags = ["-O3", "-std=gnu11", "-Wall", "-Wextra", "-fno-strict-aliasing"]
    flags += SANITIZER_FLAGS[SANITIZE]
    if STRICT:
        flags.append("-Werror")
    link = [flag for flag in SANITIZER_FLAGS[SANITIZE] if flag.startswith("-fsanitize")]
    return Extension(
        name,
        [name.replace(".", "/") + ".pyx"],
        include_dirs=["."],
        extra_compile_args=flags,
        extra_link_args=link,
        **options,
    )


def checked_extension(module: Extension) -> Extension:
    # By path: importing the package would need the extensions that are about to be built.
    path = ROOT / "pulsar_ml" / "harness" / "building" / "checked.py"
    return runpy.run_path(str(path))["checked_extension"](module)


def engine_extension() -> Extension:
    # Never instrumented: it is what instrumented code calls. Its symbols are hidden but for the hooks.
    wide = ["-march=x86-64-v2"] if platform.machine() in {"x86_64", "AMD64"} else []
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
        ]
        + wide
        + (["-Werror"] if STRICT else []),
        libraries=["pthread", "m"],
    )


def checked_operations() -> Extension:
    return checked_extension(
        extension(
            "pulsar_ml.operations._checked",
            define_macros=[("PML_FAULTS", "1"), ("PML_BUILD_ID", f'"{build_id()}"')],
        )
    )


def extensions() -> list[Extension]:
    found = [
        extension("pulsar_ml._core"),
        extension("pulsar_ml.harness.subjects.subject"),
        extension("pulsar_ml.harness.models.copies"),
        extension("pulsar_ml.harness.models.sequential"),
        extension("pulsar_ml.harness.subjects.threads", libraries=["pthread"]),
        extension("pulsar_ml.harness.linearize.search._answers"),
        extension("pulsar_ml.harness.linearize.search._native"),
        extension("pulsar_ml.harness.linearize._monitors"),
        extension("pulsar_ml.harness.linearize.cells._cells"),
        extension("pulsar_ml.harness.linearize.cells._maps"),
        extension(
            "pulsar_ml.operations._native",
            define_macros=[("PML_FAULTS", "1"), ("PML_BUILD_ID", f'"{build_id()}"')],
        ),
        engine_extension(),
    ]
    return [module for module in found if (ROOT / module.sources[0]).exists()]


class Tee(io.StringIO):
    """Keeps what passes through to the real standard error."""

    def write(self, text: str) -> int:
        sys.__stderr__.write(text)
        return super().write(text)


def translated(found: list[Extension], *, linenums: bool) -> list[Extension]:
    return cythonize(
        found,
        compiler_directives=DIRECTIVES,
        include_path=["."],
        force=STRICT,
        emit_linenums=linenums,
    )


def cythonized() -> list[Extension]:
    if SANITIZE not in SANITIZER_FLAGS:
        raise SystemExit(
            f"PULSAR_ML_SANITIZE={SANITIZE!r} is not known; use one of: thread, address, undefined"
        )
    with contextlib.redirect_stderr(Tee()) as messages:
        modules = translated(extensions(), linenums=bool(SANITIZE))
        if not SANITIZE:
            # Reports of the engine name lines of the .pxd files.
            modules += translated([checked_operations()], linenums=True)
    if STRICT and "performance hint" in messages.getvalue():
        raise SystemExit("a performance hint of Cython is an error in a strict build; see above")
    return modules


if __name__ == "__main__":
    setup(ext_modules=cythonized() if "clean" not in sys.argv else [])

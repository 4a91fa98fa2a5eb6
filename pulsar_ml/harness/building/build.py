"""Builds an extension module from one ``.pyx`` file, outside any package build.

Benchmarks, mutants, tests and users who try a structure of their own need a compiled module at
once, from one file, in a folder of their choice.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pulsar_ml.errors import BuildError, UsageError
from pulsar_ml.harness.building.build_call import CALL, BuildCall
from pulsar_ml.harness.building.checked import checked_extension, with_whole_paths
from pulsar_ml.harness.building.disk import full_disk

HEADERS = {".h", ".hpp", ".hh", ".pxd", ".pxi"}
DIRECTIVES = {
    "language_level": "3",
    "cdivision": True,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
}


def build_extension(
    source: Path,
    *,
    into: Path,
    name: str | None = None,
    include: Sequence[Path] = (),
    macros: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    language: str = "c",
    checked: bool = False,
    volatile: str = "plain",
) -> Path:
    """Compile ``source``, a ``.pyx`` file, and return the path of the extension module.

    The module is in a subfolder of ``into`` whose name has a hash of the source, the headers and
    .pxd files beside it, the flags and the macros; a second call with equal input compiles nothing.
    Other files that the source includes or cimports are not part of the hash: use a new ``into``
    when they changed. ``include`` lists folders to search before the source's own and that of the
    installed ``pulsar_ml``. ``language`` is "c" or "c++". ``checked`` builds for the engine: load
    the result by :func:`load_checked`, a plain one by :func:`load_extension`. There
    ``volatile="relaxed"`` takes volatile accesses for relaxed atomics. The macro PML_BUILD_ID names
    the build in the module: it changes with sources, flags, macros, compiler and, of a checked
    module, the engine.

    Raises UsageError when there is no such file, OSError when the disk is full, and BuildError with
    the compiler's output when the build fails. Needs Cython, setuptools and a C compiler.
    """
    source = Path(os.path.realpath(source))  # resolve() would raise for a loop of links
    if not source.is_file():
        raise UsageError(f"no file {source}: there should be a .pyx file to build")
    name = (name or source.stem).rpartition(".")[2]
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    key = hashlib.sha256(source.read_bytes())
    for file in sorted(source.parent.iterdir()):
        if file.suffix in HEADERS and file.is_file():
            key.update(file.read_bytes())
    defined = sorted((macros or {}).items())
    compiler = [os.environ.get(name, "") for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")]
    options = (name, defined, list(flags), language, checked, volatile, compiler, sys.version)
    key.update(repr(options).encode())
    if checked:
        key.update(Path(__file__).with_name("checked.py").read_bytes())
    if checked and "PML_BUILD_ID" not in (macros or {}):
        key.update(engine_identity())
    macros = {"PML_BUILD_ID": f'"{key.hexdigest()[:12]}"', **(macros or {})}
    home = Path(into).resolve() / f"{name}-{key.hexdigest()[:12]}"
    target = home / (name + suffix)
    call = BuildCall(
        str(source),
        tuple(str(Path(folder).resolve()) for folder in include),
        {name: value for name, value in macros.items() if (name, value) in defined},
        tuple(flags),
        language,
        volatile,
    )
    with only_one_process(home):
        if not target.exists():
            compile_into(home, target, source, include, macros, flags, language, checked, volatile)
        note = home / CALL
        if not note.exists():
            note.write_text(call.to_json() + "\n")
    return target


def engine_identity() -> bytes:
    """A digest of the engine and of the programs' format: another engine fails in another way."""
    here = Path(__file__).parents[1]
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    digest = hashlib.sha256((here / "subjects" / "program.py").read_bytes())
    digest.update((here / "engine" / f"_engine{suffix}").read_bytes())
    return digest.digest()


@contextlib.contextmanager
def only_one_process(folder: Path) -> Iterator[None]:
    """Create ``folder``, and let other processes that want to use it wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def compile_into(
    home: Path,
    target: Path,
    source: Path,
    include: Sequence[Path],
    macros: Mapping[str, str] | None,
    flags: Sequence[str],
    language: str,
    checked: bool,
    volatile: str,
) -> None:
    variable = "CXX" if language == "c++" else "CC"
    compiler = shlex.split(os.environ.get(variable) or sysconfig.get_config_var(variable) or "cc")
    if shutil.which(compiler[0]) is None:
        raise BuildError(
            f"there is no compiler {compiler[0]!r} for {source.name}; install one, or name it in the "
            f"environment variable {variable}"
        )
    paths = [*(str(Path(path).resolve()) for path in include), str(source.parent)]
    paths.append(str(Path(__file__).resolve().parents[3]))
    # A separate process, so that the compiler's output is captured, too.
    work = {
        "name": target.name.partition(".")[0],
        "source": str(source),
        "home": str(home),
        "paths": paths,
        "macros": list((macros or {}).items()),
        "flags": ["-O3", "-fno-strict-aliasing", *flags],
        "language": language,
        "checked": checked,
        "volatile": volatile,
    }
    script = (
        "import json, sys; from pulsar_ml.harness.building.build import compile_here; "
        "compile_here(**json.load(sys.stdin))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(work),
        text=True,
        errors="surrogateescape",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or "." for entry in sys.path)},
    )
    built = next((home / "staging").rglob(target.name), None)
    if done.returncode or built is None:
        refused = full_disk(done.stdout, home)
        if refused is not None:
            for part in ("c", "objects", "staging"):  # half a file would spoil the next build
                shutil.rmtree(home / part, ignore_errors=True)
            raise refused
        raise BuildError(f"building {source} failed:\n{done.stdout.rstrip()}")
    os.replace(built, target)  # the module appears only when it is complete


def compile_here(
    *,
    name: str,
    source: str,
    home: str,
    paths: list[str],
    macros: list[tuple[str, str]],
    flags: list[str],
    language: str,
    checked: bool,
    volatile: str,
) -> None:
    """Cythonize and compile into ``home``; runs in the child process of build_extension()."""
    from Cython.Build import cythonize
    from Cython.Compiler.Errors import CompileError
    from setuptools import Distribution, Extension, errors

    extension = Extension(
        name,
        [source],
        include_dirs=paths,
        define_macros=[tuple(macro) for macro in macros],
        extra_compile_args=flags,
        extra_link_args=[flag for flag in flags if flag.startswith("-fsanitize")],
        language=language,
    )
    if checked:
        extension = checked_extension(extension, volatile=volatile)
    try:
        modules = cythonize(  # type: ignore[no-untyped-call]
            [extension],
            include_path=paths,
            build_dir=f"{home}/c",
            compiler_directives=DIRECTIVES,
            emit_linenums=checked,
            quiet=True,
        )
    except CompileError:
        sys.exit(1)  # Cython has printed its message
    if checked:
        for module in modules:
            with_whole_paths(Path(module.sources[0]), Path(source), paths)
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib = f"{home}/staging"
    command.build_temp = f"{home}/objects"
    command.ensure_finalized()
    try:
        command.run()
    except errors.CCompilerError as error:
        sys.exit(str(error))

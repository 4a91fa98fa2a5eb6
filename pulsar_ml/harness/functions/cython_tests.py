"""Builds a ``.pyx`` file of tests into a checked module.

A generated module includes the user's file and a function for each test, which ``_called.pyx``
calls. An exception that leaves a test, and one that a ``noexcept`` function of it had to drop, is
its failure.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from pulsar_ml.errors import BuildError
from pulsar_ml.extras import require
from pulsar_ml.harness.building.build import HEADERS, build_extension
from pulsar_ml.harness.building.load import load_checked, load_extension
from pulsar_ml.harness.engine import keep_blocks
from pulsar_ml.harness.functions.called import native_subject
from pulsar_ml.harness.functions.source import TestSource
from pulsar_ml.harness.subjects.subject import Subject

COMMENTS_ON_TOP = re.compile(r"^#\s*(cython|distutils)\s*:", re.IGNORECASE)
CPLUS = re.compile(
    r"\blibcpp\b|\bcppclass\b|language\s*=\s*c\+\+|\bnew\s+[A-Za-z_][\w.]*\s*[(\[]|\.(?:hpp|hh|hxx)\b"
)
# Cython's variables in its C code, and in the table of symbols. There Clang marks a variable of C++
# with the ABI of its type, as std::string has one, and a member that it made a variable of its own
# with a number.
OBJECT_VARIABLE = re.compile(
    r"^static (?:PyObject|struct __pyx_obj_\w+|PyTypeObject) \*(__pyx_v_\w+)", re.MULTILINE
)
VARIABLE = re.compile(
    r"^(?P<at>[0-9a-f]+) (?P<size>[0-9a-f]+) [bBdD] (?:_ZL\d+)?(?P<name>__pyx_v_[\w.]+)$",
    re.MULTILINE,
)

# Cython's hints on speed, above the errors of a file.
HINT = re.compile(
    r"^performance hint: [^\n]*\n(?:Possible solutions:\n(?:\t[^\n]*\n)*)?", re.MULTILINE
)

# A module keeps the values of its C variables between executions; pml_instance is a place in it.
HEAD = """
include "{name}"

cdef extern from "pulsar_ml/harness/functions/areas.h" nogil:
    int pml_add_area(void* at, void* kept, size_t bytes)
    void pml_keep_areas()
    void pml_restore_areas()
    void pml_follow_areas()
    void pml_engine_restore_blocks()

cdef char pml_instance
PML_AREAS = <size_t>&pml_instance, <size_t>&pml_add_area, <size_t>&pml_keep_areas
"""

TESTS = """

cdef void pml_destroy(void* instance) noexcept nogil:
    pml_follow_areas()


PML_DESTROY = <size_t>&pml_destroy
PML_CREATE = {}
"""

# The instance of a test is the function that calls it.
TEST = """

cdef object pml_call_{name}():
    {call}


cdef void* pml_create_{name}(const void* settings, int threads) noexcept nogil:
    pml_restore_areas()
    pml_engine_restore_blocks()
    return <void*>pml_call_{name}


PML_CREATE["{name}"] = <size_t>&pml_create_{name}
"""


def module_subjects(
    source: TestSource, *, into: Path, flags: Sequence[str] = (), volatile: str = "plain"
) -> dict[str, Subject]:
    """Build the tests of a .pyx file for the engine; return a subject for each test's name.

    The arguments and errors are those of :func:`library_subjects`.
    """
    parts = [TESTS]
    for test in source.tests:
        nogil = f"with nogil:\n        {test.name}()"
        call = f"{test.name}()" if test.needs_gil else nogil
        parts.append(TEST.format(name=test.name, call=call))
    path, module = built_module(source, "".join(parts), into=into, flags=flags, volatile=volatile)
    build_id = path.parent.name.rpartition("-")[2]
    return {
        name: native_subject(name, build_id, create, module.PML_DESTROY, module)
        for name, create in module.PML_CREATE.items()
    }


def built_module(
    source: TestSource, part: str, *, into: Path, flags: Sequence[str] = (), volatile: str = "plain"
) -> tuple[Path, ModuleType]:
    """Build and load the module of a .pyx file, HEAD, and ``part``; return its path, too.

    The arguments and errors are those of :func:`library_subjects`.
    """
    require("build", "Cython", "setuptools", purpose=f"building {source.path.name}")
    text = source.path.read_text("utf-8")
    top = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if COMMENTS_ON_TOP.match(line):
            top.append(line)
    generated = "\n".join(["\n".join(top), HEAD.format(name=source.path.name), part])
    read = hashlib.sha256(f"{text}\0{part}".encode())
    for file in sorted(source.path.parent.iterdir()):
        if file.suffix in HEADERS and file.is_file():
            read.update(file.read_bytes())
    home = Path(into).resolve() / f"{source.path.stem}-{read.hexdigest()[:12]}"
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{source.path.stem}_tests.pyx"
    if not path.exists() or path.read_text("utf-8") != generated:
        path.write_text(generated, "utf-8")
    try:
        built = build_extension(
            path,
            into=home,
            include=[source.path.parent],
            flags=[*flags, *source.flags],
            language="c++" if CPLUS.search(text) else "c",
            macros=None if source.checked else {"PML_PLAIN": "1"},
            checked=source.checked,
            volatile=volatile,
        )
    except BuildError as error:
        words = HINT.sub("", str(error).replace(str(path), str(source.path), 1))
        raise BuildError(words) from None
    if not source.checked:
        return built, load_extension(built)
    cxx = CPLUS.search(text) is not None
    keep_blocks(True, cxx)
    try:
        module = load_checked(built)
    finally:
        keep_blocks(False, cxx)
    if not hasattr(module, "PML_KEPT"):  # loaded by an earlier call
        keep_variables(module, built)
    return built, module


def keep_variables(module: ModuleType, built: Path) -> None:
    """Let each execution begin with the values that C variables of a module have now."""
    instance, add, keep = module.PML_AREAS
    add_area = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
        add
    )
    kept = []
    for distance, size in c_variables(built):
        kept.append(ctypes.create_string_buffer(size))
        if not add_area(instance + distance, kept[-1], size):
            raise MemoryError("no memory for the values of the global variables")
    ctypes.CFUNCTYPE(None)(keep)()
    vars(module)["PML_KEPT"] = kept


def c_variables(module: Path) -> list[tuple[int, int]]:
    """The C variables of a module that Cython made: the distance to pml_instance, and the bytes.

    Variables for Python objects are left out: objects live longer than an execution.
    """
    generated = "".join(
        path.read_text("utf-8", errors="replace")
        for path in (module.parent / "c").rglob("*.c*")
        if path.is_file()
    )
    objects = set(OBJECT_VARIABLE.findall(generated))
    tool = shutil.which("nm")
    if tool is None:
        raise BuildError("the program nm (of binutils) is not installed; it lists the variables")
    done = subprocess.run(
        [tool, "-S", "--defined-only", str(module)],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    found = {match["name"]: match for match in VARIABLE.finditer(done.stdout)}
    base = next(match for name, match in found.items() if name.endswith("_pml_instance"))
    return [
        (int(match["at"], 16) - int(base["at"], 16), int(match["size"], 16))
        for name, match in found.items()
        if name not in objects and "_pml_" not in name
    ]

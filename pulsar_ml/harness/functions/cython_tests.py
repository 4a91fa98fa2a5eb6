"""Builds a ``.pyx`` file of tests into a checked module.

A generated module includes the user's file and a function for each test that the engine calls. An
exception that leaves a test, and one that a ``noexcept`` function of it had to drop, is its
failure.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pulsar_ml.errors import BuildError
from pulsar_ml.extras import require
from pulsar_ml.harness.building.build import HEADERS, build_extension
from pulsar_ml.harness.building.load import load_checked, load_extension
from pulsar_ml.harness.engine import keep_blocks
from pulsar_ml.harness.functions.source import TestSource
from pulsar_ml.harness.subjects.subject import Subject

COMMENTS_ON_TOP = re.compile(r"^#\s*(cython|distutils)\s*:", re.IGNORECASE)
CPLUS = re.compile(
    r"\blibcpp\b|\bcppclass\b|language\s*=\s*c\+\+|\bnew\s+[A-Za-z_][\w.]*\s*[(\[]|\.(?:hpp|hh|hxx)\b"
)
# Cython's variables in its C code, and in the table of symbols.
OBJECT_VARIABLE = re.compile(
    r"^static (?:PyObject|struct __pyx_obj_\w+|PyTypeObject) \*(__pyx_v_\w+)", re.MULTILINE
)
VARIABLE = re.compile(
    r"^(?P<at>[0-9a-f]+) (?P<size>[0-9a-f]+) [bBdD] (?P<name>__pyx_v_\w+)$", re.MULTILINE
)

# Cython's hints on speed, above the errors of a file.
HINT = re.compile(
    r"^performance hint: [^\n]*\n(?:Possible solutions:\n(?:\t[^\n]*\n)*)?", re.MULTILINE
)

HEAD = """
include "{name}"

import sys as pml_sys
from libc.stdint cimport int32_t as pml_i32, int64_t as pml_i64
from pulsar_ml.harness cimport (
    PML_ANY_THREAD, PML_SUBJECT_ABI, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation,
    wrap_subject,
)
from libc.string cimport strncpy as pml_strncpy

cdef extern from *:
    const char* PML_BUILD_ID

cdef extern from "pulsar_ml/harness/functions/areas.h" nogil:
    int pml_add_area(void* at, void* kept, size_t bytes)
    void pml_keep_areas()
    void pml_restore_areas()
    void pml_follow_areas()
    void pml_engine_restore_blocks()

from libc.stdlib cimport malloc as pml_malloc

pml_dropped = []
pml_sys_hook = pml_sys.unraisablehook
cdef char pml_instance
cdef PmlOperation pml_run
pml_run.name = "test"
pml_run.weight = 1


def pml_keep_dropped(dropped):
    pml_dropped.append(dropped.exc_value or dropped.exc_type)


cdef object pml_failed(PmlViolation* violation, object error):
    name = type(error).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{{trace.tb_frame.f_code.co_filename}}:{{trace.tb_lineno}}: " if trace else ""
    text = place + (f"{{name}}: {{error}}" if str(error) else name)
    violation.found = 1
    pml_strncpy(violation.invariant, b"exception", sizeof(violation.invariant) - 1)
    pml_strncpy(violation.message, text.encode(errors="replace"), sizeof(violation.message) - 1)


cdef void* pml_create(const pml_i64* settings, pml_i32 threads) noexcept nogil:
    pml_restore_areas()
    pml_engine_restore_blocks()
    return &pml_instance


cdef void pml_check(void* instance, PmlViolation* violation) noexcept nogil:
    pass


cdef void pml_destroy(void* instance) noexcept nogil:
    pml_follow_areas()


# Keeps the values of C variables. Rows have the distance to pml_instance, and the bytes.
def pml_keep_variables(variables):
    cdef Py_ssize_t distance, size
    cdef void* kept
    for distance, size in variables:
        kept = pml_malloc(size)
        if kept is NULL or not pml_add_area(&pml_instance + distance, kept, size):
            raise MemoryError("no memory for the values of the global variables")
    pml_keep_areas()


cdef void pml_fill(PmlSubject* subject, const char* name):
    subject.abi = PML_SUBJECT_ABI
    subject.n_operations = 1
    subject.max_threads = 1
    subject.name = name
    subject.summary = name
    subject.operations = &pml_run
    subject.create = pml_create
    subject.check = pml_check
    subject.destroy = pml_destroy


SUBJECTS = {{}}
"""

TEST = """
cdef void pml_call_{name}(PmlViolation* violation) noexcept with gil:
    pml_dropped.clear()
    pml_sys.unraisablehook = pml_keep_dropped
    try:
        {call}
        if pml_dropped:
            raise pml_dropped[0]
    except BaseException as error:
        pml_failed(violation, error)
    finally:
        pml_sys.unraisablehook = pml_sys_hook


cdef void pml_apply_{name}(
    void* instance, pml_i32 thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    pml_call_{name}(violation)


cdef PmlSubject pml_subject_{name}
pml_fill(&pml_subject_{name}, "{name}")
pml_subject_{name}.apply = pml_apply_{name}
SUBJECTS["{name}"] = wrap_subject(&pml_subject_{name}, PML_BUILD_ID.decode(), None)
"""


def module_subjects(
    source: TestSource, *, into: Path, flags: Sequence[str] = (), volatile: str = "plain"
) -> dict[str, Subject]:
    """Build the tests of a .pyx file for the engine; return a subject for each test's name.

    The arguments and errors are those of :func:`library_subjects`.
    """
    parts = []
    for test in source.tests:
        nogil = f"with nogil:\n            {test.name}()"
        call = f"{test.name}()" if test.needs_gil else nogil
        parts.append(TEST.format(name=test.name, call=call))
    return built_subjects(source, "\n".join(parts), into=into, flags=flags, volatile=volatile)


def built_subjects(
    source: TestSource, part: str, *, into: Path, flags: Sequence[str] = (), volatile: str = "plain"
) -> dict[str, Subject]:
    """Build the module of a .pyx file, HEAD, and ``part``, which fills its dict SUBJECTS.

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
        return dict(load_extension(built).SUBJECTS)
    cxx = CPLUS.search(text) is not None
    keep_blocks(True, cxx)
    try:
        module = load_checked(built)
    finally:
        keep_blocks(False, cxx)
    if not hasattr(module, "PML_KEPT"):  # loaded by an earlier call
        vars(module)["PML_KEPT"] = True
        module.pml_keep_variables(c_variables(built))
    return dict(module.SUBJECTS)


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
        [tool, "-CS", "--defined-only", str(module)],
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

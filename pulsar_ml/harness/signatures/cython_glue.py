"""Glue in Cython: the part of a generated module that makes a cdef class a subject."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pulsar_ml.harness.functions.source import blank
from pulsar_ml.harness.signatures.signature import FLAGS, Method, nearest_of

HEAD = """
import sys as pml_sys
from libc.stdint cimport int32_t as pml_i32, int64_t as pml_i64
from pulsar_ml.harness cimport (
    PML_SUBJECT_ABI, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation, wrap_subject,
)
from libc.string cimport strncpy as pml_strncpy

cdef extern from *:
    const char* PML_BUILD_ID

pml_dropped = []
pml_sys_hook = pml_sys.unraisablehook


cdef object pml_failed(PmlViolation* violation, object error):
    name = type(error).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}: " if trace else ""
    text = place + (f"{name}: {error}" if str(error) else name)
    violation.found = 1
    pml_strncpy(violation.invariant, b"exception", sizeof(violation.invariant) - 1)
    pml_strncpy(violation.message, text.encode(errors="replace"), sizeof(violation.message) - 1)


cdef void pml_check(void* instance, PmlViolation* violation) noexcept nogil:
    pass


SUBJECTS = {}
"""
OPERATION = """

# {operation}: {text}
cdef int pml_do_{operation}(
    void* pml_at, const pml_i64* pml_drawn, PmlResult* pml_result
) except -1 nogil:
{body}
    return 0
"""
TAIL = r"""

from cpython.ref cimport Py_DECREF, Py_INCREF

# Not instrumented: the GIL orders the accesses, which the engine does not know.
cdef extern from *:
    '''
    #define PML_QUIET static __attribute__((no_sanitize("thread"), noinline))
    static int pml_is_dropped;
    PML_QUIET void pml_set_dropped(int value) {{ pml_is_dropped = value; }}
    PML_QUIET int pml_any_dropped(void) {{ return pml_is_dropped; }}

    /* Memory of the engine for the objects, which is the same in equal executions. */
    #include <stdlib.h>
    static PyObject *pml_allocate(PyTypeObject *type, Py_ssize_t items)
    {{
        PyObject *object = (PyObject *)calloc(1, (size_t)type->tp_basicsize);
        (void)items;
        return object ? PyObject_Init(object, type) : PyErr_NoMemory();
    }}
    static void pml_release(void *object) {{ free(object); }}
    static void pml_own_memory(PyObject *type)
    {{
        PyTypeObject *changed = (PyTypeObject *)type;
        if (PyType_HasFeature(changed, Py_TPFLAGS_HAVE_GC))
            return;
        changed->tp_alloc = pml_allocate;
        changed->tp_free = pml_release;
    }}
    '''
    void pml_own_memory(object type)
    void pml_set_dropped(int value) nogil
    int pml_any_dropped() nogil

pml_excepthook = pml_sys.excepthook
pml_own_memory({type})


def pml_note_dropped(dropped):
    pml_set_dropped(1)
    pml_dropped.append(dropped.exc_value or dropped.exc_type)


# Cython prints what a noexcept method drops, without a trace; the violation has it.
def pml_print_uncaught(kind, error, trace):
    if trace is not None:
        pml_excepthook(kind, error, trace)


# Returns the mark of an exception, so that the caller raises the one that is already set.
cdef int pml_no_error() except? -1:
    return -1


cdef void pml_forget():
    pml_set_dropped(0)
    pml_dropped.clear()


cdef void pml_caught(PmlViolation* violation) noexcept with gil:
    try:
        pml_no_error()
    except BaseException as error:
        pml_failed(violation, error)
    if pml_dropped:  # by a noexcept method, whose line Cython does not keep
        pml_failed(violation, pml_dropped[0].with_traceback(None))
    pml_forget()


cdef void* pml_new() noexcept with gil:
    pml_forget()
    pml_sys.unraisablehook = pml_note_dropped
    pml_sys.excepthook = pml_print_uncaught
    created = {create}
    Py_INCREF(created)
    return <void*>created


cdef void pml_delete(void* instance) noexcept with gil:
    Py_DECREF(<object>instance)
    pml_sys.unraisablehook = pml_sys_hook
    pml_sys.excepthook = pml_excepthook


cdef void* pml_create_object(const pml_i64* settings, pml_i32 threads) noexcept nogil:
    pml_restore_areas()
    pml_engine_restore_blocks()
    return pml_new()


cdef void pml_destroy_object(void* instance) noexcept nogil:
    pml_delete(instance)
    pml_follow_areas()


ctypedef int (*pml_function)(void*, const pml_i64*, PmlResult*) noexcept nogil
cdef pml_function[{count}] pml_functions
cdef PmlOperation[{count}] pml_operations
{rows}


cdef void pml_apply_all(
    void* instance, pml_i32 thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    if pml_functions[call.code](instance, call.arguments, result) or pml_any_dropped():
        pml_caught(violation)


cdef PmlSubject pml_subject
pml_subject.abi = PML_SUBJECT_ABI
pml_subject.n_operations = {count}
pml_subject.name = {name}
pml_subject.summary = {name}
pml_subject.operations = pml_operations
pml_subject.create = pml_create_object
pml_subject.apply = pml_apply_all
pml_subject.check = pml_check
pml_subject.destroy = pml_destroy_object
SUBJECTS[{name}] = wrap_subject(&pml_subject, PML_BUILD_ID.decode(), None)
"""
STATUS = {"word": 1, "flag": 2, "tuple": 3}  # as in answers.py
# One error of Cython: the place in the text that it shows, and the line below.
ERROR = re.compile(
    r"\n?Error compiling Cython file:\n-{8,}\n.*?\n-{8,}\n[^\n]*?:(?P<line>\d+):\d+: [^\n]*",
    re.DOTALL,
)
CLASS = re.compile(r"^cdef\s+class\s+(?P<name>\w+)[^\n]*:[ \t]*$", re.MULTILINE)
METHOD = re.compile(r"^[ \t]+cp?def\s[^\n(]*?(?P<name>\w+)\s*\(", re.MULTILINE)


def shortened(text: str) -> str:
    """Cython's words without the further errors of a line that has one."""
    seen: set[str] = set()

    def first_only(match: re.Match[str]) -> str:
        if match["line"] in seen:
            return ""
        seen.add(match["line"])
        return match[0]

    return re.sub(r"\n{3,}", "\n\n", ERROR.sub(first_only, text)).rstrip()


def misspelt(text: str, type: str, methods: Sequence[Method]) -> str:
    """Names the class or the method that the text of a .pyx file lacks, or returns ""."""
    code = blank(text, "cython")
    classes = {match["name"]: match.end() for match in CLASS.finditer(code)}
    if classes and type not in classes:
        return f"there is no cdef class {type!r}; {nearest_of(type, list(classes))}"
    if not classes:
        return ""
    known = [match["name"] for match in METHOD.finditer(code, classes[type])]
    for each in methods:
        if each.on < 0 and each.name not in known:
            return f"{type} has no cdef method {each.name!r}; {nearest_of(each.name, known)}"
    return ""


def module_part(
    *, name: str, type: str, methods: Sequence[Method], roles: Sequence[int], create: str
) -> str:
    """The text that follows the user's file and the common part of generated modules."""
    parts = [
        OPERATION.format(
            operation=each.operation,
            text=" ".join(each.text.split()),
            body="\n".join(f"    {line}" for line in body(each, type)),
        )
        for each in methods
    ]
    rows = [
        line
        for number, (each, role) in enumerate(zip(methods, roles, strict=True))
        for line in row(number, each, role)
    ]
    tail = TAIL.format(
        type=type,
        create=create or f"{type}()",
        count=len(methods),
        rows="\n".join(rows),
        name=json.dumps(name),
    )
    return "".join([HEAD, *parts, tail])


def body(method: Method, type: str) -> list[str]:
    """The statements that make the arguments, call the method, and keep its answer."""
    lines = []
    drawn = 0
    for each in method.parameters:
        declared = "bint" if each.type in FLAGS else each.type
        if each.output:
            lines.append(f"cdef {declared} {each.name} = 0")
        else:
            through = "<size_t>" if declared.endswith("*") else ""
            lines.append(f"cdef {declared} {each.name} = <{declared}>{through}pml_drawn[{drawn}]")
            drawn += 1
    call = method.call(f"(<{type}>pml_at)", ".")
    words = [f"<pml_i64>{each.name}" for each in method.outputs]
    if method.result in ("", "void"):
        return [*lines, call, *kept(words)]
    declared = "bint" if method.flag else method.result
    lines += [f"cdef {declared} pml_answer = {call}"]
    if method.flag:
        if not words:
            return [*lines, *kept(["pml_answer"], "flag")]
        return [*lines, "if pml_answer:", *(f"    {line}" for line in kept(words))]
    if method.result.endswith("*"):
        opaque = method.result.replace("const ", "").replace(" ", "") == "void*"
        word = "<pml_i64><size_t>pml_answer" if opaque else "<pml_i64>pml_answer[0]"
        pointed = kept([word, *words])
        return [*lines, "if pml_answer is not NULL:", *(f"    {line}" for line in pointed)]
    return [*lines, *kept(["<pml_i64>pml_answer", *words])]


def kept(words: Sequence[str], kind: str = "") -> list[str]:
    """The statements that put these words into the answer."""
    if not words:
        return []
    status = STATUS[kind or "word"] if len(words) == 1 else STATUS["tuple"] + len(words)
    lines = [f"pml_result.words[{at}] = {word}" for at, word in enumerate(words)]
    return [f"pml_result.status = {status}", *lines]


def row(number: int, method: Method, role: int) -> list[str]:
    at = f"pml_operations[{number}]"
    lines = [
        f"pml_functions[{number}] = <pml_function>pml_do_{method.operation}",
        f'{at}.name = "{method.operation}"',
        f"{at}.weight = 1",
        f"{at}.role = {role}",
        f"{at}.n_arguments = {len(method.arguments)}",
    ]
    for index, each in enumerate(method.arguments):
        argument = f"{at}.arguments[{index}]"
        lines += [
            f'{argument}.name = "{each.name}"',
            f"{argument}.low = {each.low}",
            f"{argument}.high = {each.high}",
        ]
    return lines

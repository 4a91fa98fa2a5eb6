"""The callbacks of a subject whose operation calls a function of a checked module.

Native, because an execution may be given up inside them: no frame of the interpreter may lie
between the engine and the function.
"""

import sys

from libc.stdint cimport int32_t
from libc.string cimport strncpy

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlResult, PmlViolation

ctypedef object (*native_test)()

cdef list dropped = []
cdef object hook = sys.unraisablehook


def keep_dropped(found):
    dropped.append(found.exc_value or found.exc_type())


cdef object fill(PmlViolation* violation, object error):
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}: " if trace else ""
    if "/_called.pyx:" in place:  # a function in C, whose line nobody keeps
        place = ""
    text = place + (f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    violation.found = 1
    strncpy(violation.invariant, b"exception", sizeof(violation.invariant) - 1)
    strncpy(violation.message, text.encode(errors="replace"), sizeof(violation.message) - 1)


cdef void run(void* function, bint native, PmlViolation* violation) noexcept with gil:
    global hook
    dropped.clear()
    if sys.unraisablehook is not keep_dropped:  # which an execution that was given up leaves
        hook = sys.unraisablehook
        sys.unraisablehook = keep_dropped
    try:
        if native:
            (<native_test>function)()
        else:
            (<object>function)()
        if dropped:  # in a function that is noexcept
            fill(violation, dropped[0].with_traceback(None))
    except BaseException as error:
        fill(violation, error)
    finally:
        sys.unraisablehook = hook


# The instance is the function.
cdef void apply(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                PmlViolation* violation) noexcept nogil:
    run(instance, False, violation)


cdef void apply_native(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                       PmlViolation* violation) noexcept nogil:
    run(instance, True, violation)


cdef void check(void* instance, PmlViolation* violation) noexcept nogil:
    pass


cdef void destroy(void* instance) noexcept nogil:
    pass


APPLY, APPLY_NATIVE = <size_t>&apply, <size_t>&apply_native
CHECK, DESTROY = <size_t>&check, <size_t>&destroy

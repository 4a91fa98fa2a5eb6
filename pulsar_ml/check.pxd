# Choices, assumptions, notes and names for test functions of a .pyx file; see check.h.

from libc.stdint cimport int64_t

cdef extern from "pulsar_ml/check.h" nogil:
    """
    static void pml_check_note_number(const char *text, int64_t value)
    {
        pml_engine_note(text, PML_CHECK_SIGNED, (uint64_t)value);
    }
    """
    # A number from 0 to options - 1 that the engine chooses.
    int choose "check_choose"(int options) noexcept
    # Ends the execution, which then counts for nothing, unless the condition holds.
    void assume "check_assume"(bint holds) noexcept
    # A line of the trace, with a number.
    void note "pml_check_note_number"(const char* text, int64_t value) noexcept
    # Names an object of so many bytes in traces.
    void name "pml_engine_name"(const void* at, size_t size, const char* text) noexcept

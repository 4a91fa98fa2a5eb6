# Finds the modules that hold addresses of code.

cdef extern from "<dlfcn.h>" nogil:
    ctypedef struct Dl_info:
        const char* dli_fname
        void* dli_fbase
        const char* dli_sname
    int dladdr(const void* address, Dl_info* info) noexcept


def locate(pc: int) -> tuple[str, int] | None:
    """(file, offset) of the module that holds the code at ``pc``; None when no module does."""
    cdef Dl_info info
    if pc == 0 or dladdr(<const void*><size_t>pc, &info) == 0 or info.dli_fname is NULL:
        return None
    return info.dli_fname.decode(), pc - <size_t>info.dli_fbase


def symbol_at(pc: int) -> str:
    """The exported function that holds the code at ``pc``; "" when no module exports one."""
    cdef Dl_info info
    if pc == 0 or dladdr(<const void*><size_t>pc, &info) == 0 or info.dli_sname is NULL:
        return ""
    return info.dli_sname.decode()


cdef object _is_place = lambda pc, text: False
cdef object _library_race = lambda first, second: ""


def match_places_by(is_place, library_race) -> None:
    """Let ``is_place(pc, text)`` decide which code the texts of ``suppress`` name.

    ``library_race(first, second)`` returns the reason to pass over a race of a library, or "".
    """
    global _is_place, _library_race
    _is_place = is_place
    _library_race = library_race

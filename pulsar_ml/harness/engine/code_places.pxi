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
    return str(utf8_path(os.fsdecode(info.dli_fname))), pc - <size_t>info.dli_fbase


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


cdef str reason_to_pass(pair, suppress):
    """The reason to pass over a race of two places: "suppress", a library's own race, or ""."""
    if any([_is_place(pc, text) for pc in pair for text in suppress]):
        return "suppress"
    return _library_race(pair[0], pair[1])


def keep_blocks(begins: bool, cxx: bool) -> None:
    """Begin or end the import of a module whose memory keeps its content from then on."""
    if engine_keep_blocks(begins, cxx) < 0:
        raise MemoryError("no memory for the content of the module's blocks")


cdef dict names_of(const EngineEvent* e):
    """Names of an event's address.

    ``name``: an object that the code under test named, its size, and the distance to it. ``text``:
    a note. ``frame``: the function whose stack frame holds the address, and the distance to the
    frame's end.
    """
    cdef uint64_t offset = 0, size = 0
    cdef const char* name = NULL
    noted = OPS[e.op] == "note"
    if not noted:
        name = <const char*>engine_name(e.address, &offset, &size)
    return {
        "name": (name.decode(errors="replace"), size, offset) if name is not NULL else None,
        "text": engine_note(e.value).decode(errors="replace") if noted else "",
        "frame": (e.frame_pc, e.frame_at) if e.frame_pc else None,
    }

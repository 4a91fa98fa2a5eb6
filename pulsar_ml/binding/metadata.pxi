# Parsed values of entries as Python objects.
#
# An entry's memory may go in a thread without the GIL, such as that of the eviction, and inside a
# write section. So a value that no entry has any more is put on a stack, and the next call that
# holds the GIL gives its reference back.

cdef struct ParsedObject:
    ParsedObject* following
    PyObject* value


cdef pml_ptr released_objects


cdef void object_released(void* context, int64_t value) noexcept nogil:
    cdef ParsedObject* parsed = <ParsedObject*>value
    cdef void* first = ptr_load_relaxed(&released_objects)
    parsed.following = <ParsedObject*>first
    while not ptr_cas_strong_release(&released_objects, &first, parsed):
        parsed.following = <ParsedObject*>first


# Outside the gate: what an object does when it goes may call the core.
cdef void drop_released_objects() noexcept:
    cdef void* first = ptr_load_relaxed(&released_objects)
    cdef ParsedObject* parsed
    if first is NULL:
        return
    # The whole stack at once. Fails when another thread pushed.
    while not ptr_cas_strong_acq_rel(&released_objects, &first, NULL):
        pass
    while first is not NULL:
        parsed = <ParsedObject*>first
        first = parsed.following
        Py_DECREF(<object>parsed.value)
        release(parsed)


cdef object parsed_value(int64_t value):
    return <object>(<ParsedObject*>value).value


# Attaches a value to an entry unless it has one. False without memory.
cdef bint attach_object(EntryPool* pool, uint32_t handle, object value) noexcept:
    cdef ParsedObject* parsed = <ParsedObject*>allocate(sizeof(ParsedObject))
    cdef Status status
    if parsed is NULL:
        return False
    parsed.value = <PyObject*>value
    Py_INCREF(value)
    status = entry_attach_metadata(pool, handle, object_released, NULL, <int64_t>parsed)
    if status != PML_OK:
        Py_DECREF(value)
        release(parsed)
    return status != Status.PML_NO_MEMORY

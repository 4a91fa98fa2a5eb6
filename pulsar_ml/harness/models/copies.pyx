"""Copies of mutable models, and hashable values that are equal for models in equal states."""

from __future__ import annotations

import pickle
import types
from collections import deque
from collections.abc import Mapping

cdef extern from "Python.h":
    object PyType_GenericAlloc(type kind, Py_ssize_t items)
    object PyObject_GenericGetDict(object value, void* context)
    int PyObject_GenericSetAttr(object value, object name, object held) except -1

cdef tuple SIMPLE = (type(None), bool, int, float, str, bytes)
cdef frozenset ATOMS = frozenset([*SIMPLE, type, range, types.FunctionType, types.BuiltinFunctionType])
cdef enum:
    HEAP_TYPE = 1 << 9    # of a class statement; see PyTypeObject.tp_flags

cdef dict PLAIN = {}  # by class: its slots, or None if objects hold more than that and __dict__
cdef dict NAMED = {}  # by class: True for a named tuple without anything besides
cdef dict MAPPINGS = {}  # by class: True for a mapping
cdef dict SLOTS = {}  # by class: the names of its slots, those of the oldest base first


class NotPlain(Exception):
    """An object that only pickle can copy."""


cpdef object copied(object value):
    """Return a deep copy that preserves aliasing."""
    try:
        return again(value, {})
    except NotPlain:
        return pickle.loads(pickle.dumps(value, protocol=5))


cpdef tuple changing(object value, object like, tuple its):
    """Return the names of the attributes that hold mutable values; None if only copied() can tell.

    ``like`` is an object of the same class and ``its`` this function's result for it, or None.
    Attributes that both objects share are not inspected again.
    """
    cdef type kind = type(value)
    cdef list names = []
    cdef dict held, other
    if not plain(kind) or len(<tuple>PLAIN[kind]) or kind.__dictoffset__ == 0:
        return None
    held = <dict>PyObject_GenericGetDict(value, NULL)
    other = <dict>PyObject_GenericGetDict(like, NULL) if its is not None and type(like) is kind else {}
    for name, item in held.items():
        if other.get(name) is item and (not its or name not in its):
            continue
        if not is_immutable(item):
            names.append(name)
    return tuple(names)


cpdef object copied_but(object value, tuple names):
    """Return a deep copy of an object whose mutable values are in the attributes ``names``."""
    cdef dict memo, held = (<dict>PyObject_GenericGetDict(value, NULL)).copy()
    cdef object copy = PyType_GenericAlloc(type(value), 0)  # without a dictionary
    if names:
        memo = {id(value): copy}
        try:
            for name in names:
                held[name] = again(held[name], memo)
        except NotPlain:
            return copied(value)
    # Through the descriptor: from Python 3.13 on, objects may hold attributes outside a dictionary,
    # and PyObject_GenericSetDict leaves those in force. Not the class's own __setattr__.
    PyObject_GenericSetAttr(copy, "__dict__", held)
    return copy


cpdef long piece_weight(object item) except -1:
    """Estimate the bytes of an item of a frozen value, with the reference to it."""
    return 8 if is_shared(item) else 8 + weight(item)


cpdef long weight(object value) except -1:
    """Estimate the bytes of a frozen value, its items and the references to them."""
    cdef long sum = 56
    if isinstance(value, tuple):
        for item in <tuple>value:
            sum += piece_weight(item)
        return sum
    if type(value) is frozenset:
        for item in <frozenset>value:
            sum += 24 if is_shared(item) else 24 + weight(item)
        return sum
    return 28


# Returns true for objects that the interpreter shares.
cdef inline bint is_shared(object value) except -1:
    return value is None or type(value) is bool or (type(value) is int and -5 <= value <= 256)


cdef inline bint is_atom(object value) except -1:
    cdef type kind = type(value)
    return kind is int or value is None or kind is bool or kind is str or kind in ATOMS


cdef object again(object value, dict memo):
    cdef type kind = type(value)
    if is_atom(value):
        return value
    if kind is tuple or kind is frozenset or named(kind):
        if is_immutable(value):
            return value
        if kind is frozenset:
            return frozenset([again(item, memo) for item in value])
        items = [again(item, memo) for item in value]
        return tuple(items) if kind is tuple else tuple.__new__(kind, items)
    found = memo.get(id(value))
    if found is not None:
        return found
    if kind is list:
        copy = memo[id(value)] = []
        for item in <list>value:
            (<list>copy).append(item if is_atom(item) else again(item, memo))
        return copy
    if kind is dict:
        copy = memo[id(value)] = {}
        for key, item in (<dict>value).items():
            if not is_atom(key):
                key = again(key, memo)
            (<dict>copy)[key] = item if is_atom(item) else again(item, memo)
        return copy
    if kind is set:
        copy = memo[id(value)] = set()
        for item in <set>value:
            (<set>copy).add(again(item, memo))
        return copy
    if kind is deque:
        copy = memo[id(value)] = value.__copy__()
        for item in value:
            if not is_immutable(item):
                copy.clear()
                copy.extend([again(each, memo) for each in value])
                break
        return copy
    if not plain(kind):
        raise NotPlain
    copy = memo[id(value)] = kind.__new__(kind)
    fill(copy, value, kind, memo)
    return copy


# Returns true for a class of named tuples without anything besides.
cdef bint named(type kind) except -1:
    found = NAMED.get(kind)
    if found is None:
        found = NAMED[kind] = (issubclass(kind, tuple) and hasattr(kind, "_fields")
                               and kind.__dictoffset__ == 0 and kind.__reduce_ex__ is object.__reduce_ex__)
    return found


# Returns true if the value need not be copied; false if it may have to be.
cdef bint is_immutable(object value) except -1:
    cdef type kind = type(value)
    if kind is int or value is None or kind is bool:
        return True
    if kind is tuple or (kind not in ATOMS and named(kind)):
        for item in <tuple>value:
            if not is_immutable(item):
                return False
        return True
    if kind is frozenset:
        for item in value:
            if not is_immutable(item):
                return False
        return True
    return kind in ATOMS


cdef int fill(object copy, object value, type kind, dict memo) except -1:
    slots = <tuple>PLAIN[kind]
    held = getattr(value, "__dict__", None)
    if held is not None:
        inside = copy.__dict__
        for name, item in (<dict>held).items():
            (<dict>inside)[name] = item if is_atom(item) else again(item, memo)
    for name in slots:
        try:
            item = getattr(value, name)
        except AttributeError:
            continue
        object.__setattr__(copy, name, again(item, memo))
    return 0


# Returns true for a class whose objects are created by object.__new__() and hold only what is in
# their __dict__ and __slots__.
cdef bint plain(type kind) except -1:
    if kind not in PLAIN:
        slots = []
        fine = (kind.__new__ is object.__new__ and kind.__reduce_ex__ is object.__reduce_ex__
                and kind.__reduce__ is object.__reduce__
                and (hasattr(kind, "__dataclass_fields__") or not hasattr(kind, "__setstate__")))
        for each in kind.__mro__:
            if each is object:
                continue
            if not each.__flags__ & HEAP_TYPE:  # objects hold values that only C can see
                fine = False
            its = each.__dict__.get("__slots__", ())
            for name in ((its,) if isinstance(its, str) else its):
                if name not in ("__dict__", "__weakref__"):
                    slots.append(f"_{each.__name__.lstrip('_')}{name}"
                                 if name.startswith("__") and not name.endswith("__") else name)
        PLAIN[kind] = tuple(slots) if fine else None
    return PLAIN[kind] is not None


cpdef object freeze(object value):
    """Return a hashable value that is equal for equal states, with the same aliasing."""
    return frozen(value, {})


cdef object frozen(object value, dict seen):
    kind = type(value)
    if kind in ATOMS:
        return value.__qualname__ if isinstance(value, (type, types.FunctionType)) else value
    if isinstance(value, SIMPLE):
        return value
    if isinstance(value, tuple):
        return tuple([frozen(item, seen) for item in value])
    if isinstance(value, (set, frozenset)):
        return frozenset([frozen(item, seen) for item in value])
    if isinstance(value, type):
        return value.__qualname__
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, (list, deque)):
        return tuple([frozen(item, seen) for item in value])
    if is_mapping(kind):
        return tuple([(frozen(key, seen), frozen(item, seen)) for key, item in value.items()])
    if isinstance(value, types.MethodType):
        return value.__func__.__qualname__, frozen(value.__self__, seen)
    return tuple([frozen(field, seen) for field in fields(value)])


cdef bint is_mapping(type kind) except -1:
    if kind not in MAPPINGS:
        MAPPINGS[kind] = issubclass(kind, Mapping)
    return MAPPINGS[kind]


cdef list slots_of(type kind):
    if kind not in SLOTS:
        names = []
        for each in reversed(kind.__mro__):
            its = each.__dict__.get("__slots__", ())
            names += [its] if isinstance(its, str) else its
        SLOTS[kind] = names
    return SLOTS[kind]


cdef list fields(object value):
    """All that an object holds, in an order that its class decides."""
    found = [getattr(value, name, None) for name in slots_of(type(value))]
    state = getattr(value, "__dict__", None) or {}
    for name in sorted(state):
        found.append(state[name])
    return found

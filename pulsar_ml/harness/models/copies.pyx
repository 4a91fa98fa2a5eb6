"""Copies of models, and values that are equal for equal ones: what a checker needs of them as states."""

from __future__ import annotations

import pickle
import types
from collections import deque
from collections.abc import Mapping

cdef extern from "Python.h":
    object PyType_GenericAlloc(type kind, Py_ssize_t items)
    object PyObject_GenericGetDict(object made, void* context)
    int PyObject_GenericSetDict(object made, object held, void* context) except -1

cdef tuple SIMPLE = (type(None), bool, int, float, str, bytes)
cdef frozenset ATOMS = frozenset([*SIMPLE, type, range, types.FunctionType, types.BuiltinFunctionType])
cdef enum:
    HEAP_TYPE = 1 << 9    # of a class statement; see PyTypeObject.tp_flags

cdef dict PLAIN = {}  # by class: whether its objects are what their __dict__ and __slots__ hold
cdef dict NAMED = {}  # by class: whether its objects are tuples, and nothing besides


class NotPlain(Exception):
    """Of an object that only pickle can copy."""


cpdef object copied(object value):
    """``value`` again, and all that it holds; what is held twice is again held twice."""
    try:
        return again(value, {})
    except NotPlain:
        return pickle.loads(pickle.dumps(value, protocol=5))


cpdef tuple changing(object value, object like, tuple its):
    """The attributes of an object that a copy of it needs copies of; None: :func:`copied` is to do it.

    ``like`` is an object of the same class and ``its`` what this function said of that, or None: what both
    hold need not be looked at again.
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
    """:func:`copied` of an object of which only those attributes hold what can change."""
    cdef dict memo, held = (<dict>PyObject_GenericGetDict(value, NULL)).copy()
    cdef object made = PyType_GenericAlloc(type(value), 0)  # without a dictionary
    if names:
        memo = {id(value): made}
        try:
            for name in names:
                held[name] = again(held[name], memo)
        except NotPlain:
            return copied(value)
    PyObject_GenericSetDict(made, held, NULL)
    return made


cpdef long piece_weight(object item) except -1:
    """About how many bytes a part of a frozen value takes, with the reference to it."""
    return 8 if is_shared(item) else 8 + weight(item)


cpdef long weight(object value) except -1:
    """About how many bytes a frozen value takes: those of its parts and of the references to them."""
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


# Of which the interpreter has only one.
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
        made = memo[id(value)] = []
        for item in <list>value:
            (<list>made).append(item if is_atom(item) else again(item, memo))
        return made
    if kind is dict:
        made = memo[id(value)] = {}
        for key, item in (<dict>value).items():
            if not is_atom(key):
                key = again(key, memo)
            (<dict>made)[key] = item if is_atom(item) else again(item, memo)
        return made
    if kind is set:
        made = memo[id(value)] = set()
        for item in <set>value:
            (<set>made).add(again(item, memo))
        return made
    if kind is deque:
        made = memo[id(value)] = value.__copy__()
        for item in value:
            if not is_immutable(item):
                made.clear()
                made.extend([again(each, memo) for each in value])
                break
        return made
    if not plain(kind):
        raise NotPlain
    made = memo[id(value)] = kind.__new__(kind)
    fill(made, value, kind, memo)
    return made


# A class of named tuples, without anything that a tuple does not have.
cdef bint named(type kind) except -1:
    found = NAMED.get(kind)
    if found is None:
        found = NAMED[kind] = (issubclass(kind, tuple) and hasattr(kind, "_fields")
                               and kind.__dictoffset__ == 0 and kind.__reduce_ex__ is object.__reduce_ex__)
    return found


# Whether it need not be copied; False: perhaps not.
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


cdef int fill(object made, object value, type kind, dict memo) except -1:
    slots = <tuple>PLAIN[kind]
    held = getattr(value, "__dict__", None)
    if held is not None:
        inside = made.__dict__
        for name, item in (<dict>held).items():
            (<dict>inside)[name] = item if is_atom(item) else again(item, memo)
    for name in slots:
        try:
            item = getattr(value, name)
        except AttributeError:
            continue
        object.__setattr__(made, name, again(item, memo))
    return 0


# Whether objects of the class hold only what their __dict__ and __slots__ do, and are made by nothing else.
cdef bint plain(type kind) except -1:
    if kind not in PLAIN:
        slots = []
        fine = (kind.__new__ is object.__new__ and kind.__reduce_ex__ is object.__reduce_ex__
                and kind.__reduce__ is object.__reduce__
                and (hasattr(kind, "__dataclass_fields__") or not hasattr(kind, "__setstate__")))
        for each in kind.__mro__:
            if each is object:
                continue
            if not each.__flags__ & HEAP_TYPE:  # its objects hold what only C can see
                fine = False
            its = each.__dict__.get("__slots__", ())
            for name in ((its,) if isinstance(its, str) else its):
                if name not in ("__dict__", "__weakref__"):
                    slots.append(f"_{each.__name__.lstrip('_')}{name}"
                                 if name.startswith("__") and not name.endswith("__") else name)
        PLAIN[kind] = tuple(slots) if fine else None
    return PLAIN[kind] is not None


cpdef object freeze(object value):
    """A value that is equal for equal states. Things that can change are told apart by which they are."""
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
    if isinstance(value, Mapping):
        return tuple([(frozen(key, seen), frozen(item, seen)) for key, item in value.items()])
    if isinstance(value, types.MethodType):
        return value.__func__.__qualname__, frozen(value.__self__, seen)
    return tuple([frozen(field, seen) for field in fields(value)])


cdef list fields(object value):
    """All that an object holds, in an order that its class decides."""
    found = []
    for kind in reversed(type(value).__mro__):
        slots = kind.__dict__.get("__slots__", ())
        found += [getattr(value, name, None) for name in ([slots] if isinstance(slots, str) else slots)]
    state = getattr(value, "__dict__", None) or {}
    for name in sorted(state):
        found.append(state[name])
    return found

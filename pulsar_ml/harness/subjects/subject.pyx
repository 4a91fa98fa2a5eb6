"""Subjects: structures under test, as the harness sees them.

A native module fills a ``PmlSubject`` table (``subject.h``) and passes it to :func:`wrap_subject`.
Python sees a :class:`Subject` with its operations, and creates an :class:`Instance` to call.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

cimport cython
from libc.string cimport memset


class Argument(NamedTuple):
    """An argument or setting: its name, and the range of its values, both ends inclusive."""

    name: str
    low: int
    high: int


class SubjectOperation(NamedTuple):
    """An operation of a subject.

    Attributes:
        name: its name.
        code: its index in the subject's table.
        weight: its relative frequency in programs; 0: only when a mix names it.
        role: 0 for any thread; all operations of one role above 0 are called by the same thread.
        arguments: names and ranges of its arguments, at most three.
    """

    name: str
    code: int
    weight: int
    role: int
    arguments: tuple[Argument, ...]


class Result(NamedTuple):
    """The result of a call: a status and four 64-bit words, whose meaning the subject defines."""

    status: int
    words: tuple[int, int, int, int]


class InvariantViolation(AssertionError):
    """A call or a check found a broken invariant.

    Attributes:
        invariant: its id, for example ``"I14"``.
        message: the values seen and expected.
    """

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant
        self.message = message


NO_SESSION = nullcontext()


cdef class Subject:
    """A structure under test: a table of operations that several threads may call.

    Native modules create subjects, by :func:`subject_of` or :func:`wrap_subject` of Cython; Python
    code finds them in the module, by convention in its dict ``SUBJECTS``.

    Attributes:
        name, summary: its name, and one line about it.
        operations: its :class:`SubjectOperation` rows.
        settings: names and ranges of its creation settings.
        max_threads: the most threads of an instance; 0 for no limit.
        build_id: names the build of the module.
        judge: the judge of its answers wherever a call names no other; None for no judge.
        around: returns the context that its executions need; None for none.
    """

    def __init__(self):
        raise TypeError("subjects come from native modules; see pulsar_ml/harness/subject.h")

    @property
    def name(self) -> str:
        return self.table.name.decode()

    @property
    def summary(self) -> str:
        return self.table.summary.decode()

    @property
    def max_threads(self) -> int:
        """The most threads that may use one instance; 0 for no limit."""
        return self.table.max_threads

    @property
    def address(self) -> int:
        """The address of the native table, for runners in other modules."""
        return <size_t>self.table

    def session(self):
        """Return the context in which the engine makes executions of the subject."""
        return NO_SESSION if self.around is None else self.around()

    def operation(self, str name) -> SubjectOperation:
        """Return the operation called ``name``; KeyError lists those that exist."""
        for operation in self.operations:
            if operation.name == name:
                return operation
        known = ", ".join(operation.name for operation in self.operations)
        raise KeyError(f"subject {self.name!r} has no operation {name!r}; it has: {known}")

    def create(self, *, int threads=1, settings=None) -> Instance:
        """Create an instance for ``threads`` threads.

        ``settings`` maps names to integers; the low end of its range stands for a missing one.
        Raises ValueError for an unknown or out-of-range setting, and MemoryError.
        """
        return Instance(self, threads, settings)

    def __repr__(self) -> str:
        return f"<Subject {self.name!r}: {len(self.operations)} operations>"


# __dealloc__ needs the subject, which the garbage collector would otherwise clear first.
@cython.no_gc_clear
cdef class Instance:
    """An instance of a subject; one Python thread at a time calls it through this object."""

    def __cinit__(self, Subject subject not None, int threads, settings):
        cdef int64_t[16] values
        cdef int i
        chosen = dict(settings or {})
        if threads < 1 or (subject.table.max_threads and threads > subject.table.max_threads):
            limit = subject.table.max_threads or "any number"
            raise ValueError(f"{threads} threads for subject {subject.name!r}; it takes 1 to {limit}")
        for i, setting in enumerate(subject.settings):
            value = chosen.pop(setting.name, setting.low)
            if not setting.low <= value <= setting.high:
                raise ValueError(f"setting {setting.name}={value} of subject {subject.name!r} is outside "
                                 f"{setting.low}..{setting.high}")
            values[i] = value
        if chosen:
            known = ", ".join(setting.name for setting in subject.settings) or "none"
            raise ValueError(f"subject {subject.name!r} has no setting {next(iter(chosen))!r}; "
                             f"it has: {known}")
        self.subject = subject
        self.threads = threads
        with nogil:
            self.native = subject.table.create(values, threads)
        if self.native is NULL:
            raise MemoryError(f"no memory for an instance of subject {subject.name!r}")

    def __dealloc__(self):
        if self.native is not NULL:
            self.subject.table.destroy(self.native)

    @property
    def address(self) -> int:
        """The address of the native instance, for runners in other modules."""
        return <size_t>self.native

    def call(self, str name, *arguments, int thread=0) -> Result:
        """Call one operation and return its result.

        Raises InvariantViolation when the operation found a broken invariant, KeyError for an
        unknown name, TypeError or ValueError for wrong arguments.
        """
        cdef PmlCall call
        cdef PmlResult result
        cdef PmlViolation violation
        cdef int i
        operation = self.subject.operation(name)
        if len(arguments) != len(operation.arguments):
            raise TypeError(f"{name} takes {len(operation.arguments)} arguments, got {len(arguments)}")
        if not 0 <= thread < self.threads:
            raise ValueError(f"thread {thread} is outside 0..{self.threads - 1}")
        memset(&call, 0, sizeof(call))
        memset(&result, 0, sizeof(result))
        memset(&violation, 0, sizeof(violation))
        call.code = operation.code
        for i, (argument, value) in enumerate(zip(operation.arguments, arguments, strict=True)):
            if not argument.low <= value <= argument.high:
                raise ValueError(f"{argument.name}={value} of {name} is outside "
                                 f"{argument.low}..{argument.high}")
            call.arguments[i] = value
        with nogil:
            self.subject.table.apply(self.native, thread, &call, &result, &violation)
        raise_violation(&violation)
        return Result(result.status,
                      (result.words[0], result.words[1], result.words[2], result.words[3]))

    def check(self) -> None:
        """Check the invariants at quiescence; InvariantViolation for a broken one."""
        cdef PmlViolation violation
        memset(&violation, 0, sizeof(violation))
        with nogil:
            self.subject.table.check(self.native, &violation)
        raise_violation(&violation)


cdef int raise_violation(const PmlViolation* violation) except -1:
    if violation.found:
        raise InvariantViolation((<const char*>violation.invariant).decode(errors="replace"),
                                 (<const char*>violation.message).decode(errors="replace"))
    return 0


cdef Subject wrap_subject(const PmlSubject* table, object build_id, object owner):
    """Return a Subject for ``table``, which must live as long as ``owner``.

    Raises ImportError for a table of another ABI.
    """
    if table.abi != PML_SUBJECT_ABI:
        raise ImportError(f"subject table has ABI {table.abi}, this harness speaks {PML_SUBJECT_ABI}; "
                          "rebuild the module")
    cdef Subject subject = Subject.__new__(Subject)
    cdef int i, j
    subject.table = table
    subject.build_id = build_id
    subject.owner = owner
    subject.settings = tuple(
        [Argument(table.settings[i].name.decode(), table.settings[i].low, table.settings[i].high)
         for i in range(table.n_settings)])
    operations = []
    for i in range(table.n_operations):
        arguments = tuple([Argument(table.operations[i].arguments[j].name.decode(),
                                    table.operations[i].arguments[j].low,
                                    table.operations[i].arguments[j].high)
                           for j in range(table.operations[i].n_arguments)])
        operations.append(SubjectOperation(table.operations[i].name.decode(), i, table.operations[i].weight,
                                    table.operations[i].role, arguments))
    subject.operations = tuple(operations)
    return subject


def subject_at(size_t address, str build_id, object owner, *, bint needs_gil=False) -> Subject:
    """Return the Subject whose table is at ``address`` of a library that ``owner`` keeps loaded.

    The engine calls functions that ``needs_gil`` with the GIL. Raises ImportError for a table of
    another ABI.
    """
    subject = wrap_subject(<const PmlSubject*>address, build_id, owner)
    subject.needs_gil = needs_gil
    return subject

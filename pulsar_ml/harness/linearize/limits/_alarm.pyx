"""The alarm of a check: interrupts Python code, such as a model's step, when the time is over.

Native searches look at the clock themselves. Everything else is interrupted by a signal between two
of its instructions, or in a call that waits. A call into native code of others, such as a large
product of matrices, ends first. The alarm is silent outside the main thread, and where the program
uses SIGALRM itself: there, a limit is noticed after a step.
"""

from __future__ import annotations

from cpython.pythread cimport PyThread_get_thread_ident
from libc.signal cimport SIGALRM
from libc.stdint cimport INT64_MAX, int64_t
from posix.time cimport ITIMER_REAL, getitimer, itimerval, setitimer
from pulsar_ml.sync.clock cimport monotonic_ns

import _signal  # the functions of ``signal`` take most of their time to name handlers
import threading

cdef int64_t GRACE_NS = 50_000_000  # in which a native search notices the end of the time first
cdef int64_t AGAIN_NS = 50_000_000  # between two alarms: a model may swallow an exception
cdef object main_thread = threading.main_thread
cdef object handler, set_handler
handler, set_handler = _signal.getsignal, _signal.signal
cdef tuple UNUSED = (_signal.SIG_DFL, _signal.SIG_IGN)


class OutOfTime(BaseException):
    """The time limit of a check is over; no Exception, so that a model's handlers let it pass."""


# True when this thread may set an alarm, and nobody else has set one.
cdef bint is_free() except -1:
    cdef itimerval timer
    if main_thread().ident != PyThread_get_thread_ident():
        return False
    if handler(SIGALRM) not in UNUSED:
        return False
    getitimer(ITIMER_REAL, &timer)
    return timer.it_value.tv_sec == 0 and timer.it_value.tv_usec == 0


# Lets the signal come after so many nanoseconds, and again and again; 0: never.
cdef void ring_after(int64_t ns) noexcept nogil:
    cdef itimerval timer
    cdef int64_t again = AGAIN_NS if ns else 0
    timer.it_value.tv_sec = ns // 1_000_000_000
    timer.it_value.tv_usec = ns % 1_000_000_000 // 1_000
    timer.it_interval.tv_sec = again // 1_000_000_000
    timer.it_interval.tv_usec = again % 1_000_000_000 // 1_000
    setitimer(ITIMER_REAL, &timer, NULL)


cdef class alarm:
    """A block that raises OutOfTime when the moment of the monotonic clock has come.

    The exception may also come directly behind the block's last statement.
    """

    cdef int64_t deadline_ns
    cdef bint active
    cdef object earlier

    def __cinit__(self, int64_t deadline_ns):
        self.deadline_ns = deadline_ns

    def __enter__(self):
        if self.deadline_ns == INT64_MAX or not is_free():
            return
        self.active = True
        self.earlier = set_handler(SIGALRM, self.ring)
        ring_after(max(<int64_t>0, self.deadline_ns - monotonic_ns()) + GRACE_NS)

    def __exit__(self, *error):
        if self.active:
            self.active = False
            ring_after(0)
            set_handler(SIGALRM, self.earlier)

    def ring(self, number, frame):
        if self.active:
            raise OutOfTime

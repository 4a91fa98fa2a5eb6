# Forks: a child has none of its parent's other threads, and must not inherit a lock that one of
# them held.
#
# The gate      Shut while the process forks, see gate.pxi.
# Managers      A manager's own thread does not pass the gate. Managers whose thread runs are held
#               outside every pass while the process forks. In the child they have no thread: a put
#               that makes a cache too large evicts by itself, and start() starts a thread anew.

# A lock for sections of Python code, which no other thread holds while the process forks.
@cython.final
@cython.internal
cdef class GatedLock:
    cdef object lock

    def __cinit__(self):
        self.lock = threading.Lock()

    def __enter__(self):
        with nogil:
            native_enter()
        try:
            self.lock.acquire()
        except:
            native_leave()
            raise

    def __exit__(self, *exception):
        self.lock.release()
        native_leave()


_serving = weakref.WeakSet()     # NativeMemory of every manager that was ever started
_starting = GatedLock.__new__(GatedLock)    # held while _serving changes, and so by no fork
_fork_lock = threading.Lock()    # two threads that fork would wait for what the other holds
_held = []
_unstopped = []     # NativeMemory of managers that went while the process forked


def _hold_for_fork():
    _fork_lock.acquire()
    with nogil:
        gate_close()
    _held.extend(_serving)
    for memory in _held:
        with nogil:
            eviction_thread_hold((<NativeMemory>memory).manager)


def _go_on_after_fork():
    for memory in _held:
        eviction_thread_go_on((<NativeMemory>memory).manager)
    gate_open(False)
    unstopped = list(_unstopped)
    _unstopped.clear()
    _held.clear()
    _fork_lock.release()
    for memory in unstopped:
        stop_thread(<NativeMemory>memory)
    run_callbacks()


def _forget_in_child():
    for memory in _held:
        eviction_thread_forget((<NativeMemory>memory).manager)
    gate_open(True)
    forget_triggers()
    _serving.clear()
    _unstopped.clear()
    _held.clear()
    _fork_lock.release()
    run_callbacks()


# Ends the thread of a manager that goes. Not while the process forks: the fork holds the thread.
cdef int stop_thread(NativeMemory memory) except -1:
    if pml_calls.forking:
        _unstopped.append(memory)
        return 0
    with nogil:
        native_enter()
        eviction_thread_stop(memory.manager)
        native_leave()
    return 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_for_fork, after_in_parent=_go_on_after_fork, after_in_child=_forget_in_child)

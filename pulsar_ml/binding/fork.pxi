# Forks: a child has none of its parent's native threads, and must not inherit a lock that one held.
#
# Managers whose thread runs are held outside every pass while the process forks. In the child they
# have no thread: a put that makes a cache too large evicts by itself, and start() starts a thread
# anew.

_serving = weakref.WeakSet()     # NativeMemory of every manager that was ever started
_fork_lock = threading.Lock()    # two threads that fork would wait for what the other holds
_held = []


def _hold_for_fork():
    _fork_lock.acquire()
    _held.extend(_serving)
    for memory in _held:
        with nogil:
            eviction_thread_hold((<NativeMemory>memory).manager)


def _go_on_after_fork():
    for memory in _held:
        eviction_thread_go_on((<NativeMemory>memory).manager)
    _held.clear()
    _fork_lock.release()


def _forget_in_child():
    for memory in _held:
        eviction_thread_forget((<NativeMemory>memory).manager)
    _held.clear()
    _serving.clear()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_for_fork, after_in_parent=_go_on_after_fork, after_in_child=_forget_in_child)

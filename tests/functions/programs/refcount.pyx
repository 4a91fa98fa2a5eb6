# distutils: language = c++
# cython: language_level=3
"""Intrusive reference counts, shared by threads without the GIL."""

from libcpp.atomic cimport (
    atomic, memory_order_acq_rel, memory_order_acquire, memory_order_relaxed, memory_order_release,
)

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)

cdef extern from * nogil:
    """
    #include <atomic>
    struct Buffer {
        std::atomic<int> references{1};
        int bytes_used = 0;
        int data[4] = {};
    };
    """
    cdef cppclass Buffer:
        atomic[int] references
        int bytes_used
        int data[4]


cdef void retain(Buffer* buffer) noexcept nogil:
    buffer.references.fetch_add(1, memory_order_relaxed)


cdef void release(Buffer* buffer) noexcept nogil:
    if buffer.references.fetch_sub(1, memory_order_acq_rel) == 1:
        del buffer


cdef void release_buggy(Buffer* buffer) noexcept nogil:
    # Two threads may both see a count of one, or none.
    cdef int left = buffer.references.load(memory_order_acquire) - 1
    buffer.references.store(left, memory_order_release)
    if left == 0:
        del buffer


ctypedef void (*release_t)(Buffer*) noexcept nogil

cdef struct Task:
    Buffer* buffer
    release_t release
    int index


cdef void* use(void* argument) noexcept nogil:
    cdef Task* task = <Task*>argument
    task.buffer.data[task.index] = task.index
    task.release(task.buffer)
    return NULL


cdef int share(release_t drop) except -1 nogil:
    cdef Buffer* buffer = new Buffer()
    cdef pthread_t threads[2]
    cdef Task tasks[2]
    for i in range(2):
        retain(buffer)
        tasks[i] = Task(buffer, drop, i)
        if pthread_create(&threads[i], NULL, use, &tasks[i]):
            raise OSError("no thread")
    drop(buffer)
    for i in range(2):
        pthread_join(threads[i], NULL)
    return 0


def test_refcount():
    with nogil:
        share(release)


def test_refcount_buggy():
    with nogil:
        share(release_buggy)

# cython: language_level=3
"""Sorted linked list with a mutex in each node; a thread holds two neighbours at most."""

from libc.stdlib cimport free, malloc

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)
    int pthread_mutex_init(pthread_mutex_t*, void*)
    int pthread_mutex_destroy(pthread_mutex_t*)
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)

cdef extern from "<assert.h>" nogil:
    void c_assert "assert"(bint)

cdef struct Node:
    int key
    Node* next
    pthread_mutex_t lock

ctypedef bint (*insert_t)(Node*, int) noexcept nogil


cdef Node* make_node(int key, Node* next) noexcept nogil:
    cdef Node* node = <Node*>malloc(sizeof(Node))
    node.key = key
    node.next = next
    pthread_mutex_init(&node.lock, NULL)
    return node


cdef void free_list(Node* head) noexcept nogil:
    cdef Node* next
    while head:
        next = head.next
        pthread_mutex_destroy(&head.lock)
        free(head)
        head = next


cdef bint insert(Node* head, int key) noexcept nogil:
    cdef Node* before = head
    cdef Node* after
    pthread_mutex_lock(&before.lock)
    after = before.next
    while after and after.key < key:
        pthread_mutex_lock(&after.lock)
        pthread_mutex_unlock(&before.lock)
        before, after = after, after.next
    before.next = make_node(key, after)
    pthread_mutex_unlock(&before.lock)
    return True


cdef bint insert_buggy(Node* head, int key) noexcept nogil:
    """Leaves a node before it has the next one: another thread may insert in between."""
    cdef Node* before = head
    cdef Node* after
    pthread_mutex_lock(&before.lock)
    after = before.next
    while after and after.key < key:
        pthread_mutex_unlock(&before.lock)
        pthread_mutex_lock(&after.lock)
        before, after = after, after.next
    pthread_mutex_unlock(&before.lock)
    cdef Node* node = make_node(key, after)
    pthread_mutex_lock(&before.lock)
    before.next = node
    pthread_mutex_unlock(&before.lock)
    return True


cdef struct Work:
    Node* head
    int key
    insert_t insert


cdef void* run(void* argument) noexcept nogil:
    cdef Work* work = <Work*>argument
    work.insert(work.head, work.key)
    return NULL


cdef void insert_by_two(insert_t how) noexcept nogil:
    cdef Node* head = make_node(0, make_node(10, NULL))
    cdef Work work[2]
    cdef pthread_t threads[2]
    cdef int i, length = 0
    for i in range(2):
        work[i] = Work(head, 20 + i, how)
        pthread_create(&threads[i], NULL, run, &work[i])
    for i in range(2):
        pthread_join(threads[i], NULL)
    cdef Node* node = head
    while node:
        if node.next:
            c_assert(node.key < node.next.key)
        length += 1
        node = node.next
    c_assert(length == 4)
    free_list(head)


cdef void test_sorted_list() noexcept nogil:
    insert_by_two(insert)


cdef void test_sorted_list_buggy() noexcept nogil:
    insert_by_two(insert_buggy)

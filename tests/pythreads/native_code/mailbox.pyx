"""Two mailboxes of mailbox.h for Python: only the second one publishes its letter."""

cdef extern from "mailbox.h" nogil:
    cdef cppclass RelaxedMailbox:
        void put(int)
        int take()
    cdef cppclass OrderedMailbox:
        void put(int)
        int take()


cdef class Relaxed:
    cdef RelaxedMailbox* box

    def __cinit__(self):
        self.box = new RelaxedMailbox()

    def __dealloc__(self):
        del self.box

    def put(self, int value):
        with nogil:
            self.box.put(value)

    def take(self):
        with nogil:
            value = self.box.take()
        return value


cdef class Ordered:
    cdef OrderedMailbox* box

    def __cinit__(self):
        self.box = new OrderedMailbox()

    def __dealloc__(self):
        del self.box

    def put(self, int value):
        with nogil:
            self.box.put(value)

    def take(self):
        with nogil:
            value = self.box.take()
        return value

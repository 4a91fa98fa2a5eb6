"""The mailbox of mailbox.h for Python: only one that publishes orders its letter."""

cdef extern from "mailbox.h" nogil:
    cdef cppclass LetterBox "Mailbox":
        LetterBox(bint publishes)
        void put(int)
        int take()


cdef class Mailbox:
    cdef LetterBox* box

    def __cinit__(self, bint publishes):
        self.box = new LetterBox(publishes)

    def __dealloc__(self):
        del self.box

    def put(self, int value):
        with nogil:
            self.box.put(value)

    def take(self):
        with nogil:
            value = self.box.take()
        return value

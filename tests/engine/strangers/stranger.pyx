# distutils: language = c++
"""A C++ structure as a stranger would write it: std::atomic, std::mutex, new and delete."""

from pulsar_ml.harness cimport PmlSubject, wrap_subject

cdef extern from *:
    """
    #include <atomic>
    #include <mutex>
    #include <cstring>
    #include "pulsar_ml/harness/subject.h"

    struct Node { long value; };
    template <bool LOCKED> struct Box {
        std::mutex lock;
        std::atomic<Node *> node{nullptr};
        void replace(long value) {
            Node *fresh = new Node{value};
            if (LOCKED) lock.lock();
            delete node.exchange(fresh, std::memory_order_acq_rel);
            if (LOCKED) lock.unlock();
        }
        long read() {
            if (LOCKED) lock.lock();
            Node *seen = node.load(std::memory_order_acquire);
            long value = seen ? seen->value : 0;
            if (LOCKED) lock.unlock();
            return value;
        }
        ~Box() { delete node.load(); }
    };

    template <bool LOCKED> struct Table {
        static void *create(const int64_t *, int32_t) { return new Box<LOCKED>; }
        static void apply(void *box, int32_t thread, const PmlCall *call, PmlResult *result,
                          PmlViolation *) {
            if (call->code == 0) static_cast<Box<LOCKED> *>(box)->replace(thread + 1);
            else result->words[0] = static_cast<Box<LOCKED> *>(box)->read();
        }
        static void check(void *, PmlViolation *) {}
        static void destroy(void *box) { delete static_cast<Box<LOCKED> *>(box); }
    };

    static const PmlOperation OPERATIONS[2] = {
        {"replace", 1, 0, 0, 0, {}}, {"read", 1, 0, 0, 0, {}}};
    static const PmlArgument NO_SETTING = {};
    static const PmlSubject LOCKED_BOX = {PML_SUBJECT_ABI, 2, 0, 0, "locked_box", "",
        OPERATIONS, &NO_SETTING,
        Table<true>::create, Table<true>::apply, Table<true>::check, Table<true>::destroy};
    static const PmlSubject BARE_BOX = {PML_SUBJECT_ABI, 2, 0, 0, "bare_box", "",
        OPERATIONS, &NO_SETTING,
        Table<false>::create, Table<false>::apply, Table<false>::check, Table<false>::destroy};
    """
    const PmlSubject LOCKED_BOX
    const PmlSubject BARE_BOX

SUBJECTS = {"locked_box": wrap_subject(&LOCKED_BOX, "stranger", None),
            "bare_box": wrap_subject(&BARE_BOX, "stranger", None)}

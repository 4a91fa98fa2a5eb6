"""The two rings as subjects."""

from pulsar_ml.harness cimport PmlSubject, wrap_subject


cdef extern from "ring_table.hpp":
    const PmlSubject RING_RELAXED
    const PmlSubject RING_RELEASE


SUBJECTS = {
    "ring_relaxed": wrap_subject(&RING_RELAXED, "stranger 1.0", None),
    "ring_release": wrap_subject(&RING_RELEASE, "stranger 1.0", None),
}

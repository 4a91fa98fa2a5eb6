"""All structures as subjects of the harness, in one extension.

A structure's operations live in ``pulsar_ml/operations/<structure>.pxd``, which keeps no state and
offers one function, ``<structure>_subject(SubjectTable* table)``: it fills in the name, the four
functions, the settings and the operations (``support.pxd`` has what is needed for that). This
module owns the tables. To add a structure: cimport its function below and add one line to
:func:`all_subjects`.

Operations of weight 0 never occur unless asked for: they are wrong on purpose, or edge cases, and
tests call them to see that a check notices.
"""

from libc.stdint cimport int64_t

from pulsar_ml.harness.subjects.subject cimport Subject, wrap_subject
from pulsar_ml.operations.cache_manager cimport cache_manager_subject
from pulsar_ml.operations.ack_state cimport ack_state_subject
from pulsar_ml.operations.active_cursors cimport active_cursors_subject
from pulsar_ml.operations.cache_manager cimport cache_manager_subject
from pulsar_ml.operations.cursor_heap cimport cursor_heap_subject
from pulsar_ml.operations.delayed_manager cimport delayed_manager_subject
from pulsar_ml.operations.delayed_tracker cimport delayed_tracker_subject
from pulsar_ml.operations.entry cimport entry_subject
from pulsar_ml.operations.entry_wrapper cimport entry_wrapper_subject
from pulsar_ml.operations.eviction_policy cimport eviction_policy_subject
from pulsar_ml.operations.inflight_limiter cimport inflight_limiter_subject
from pulsar_ml.operations.mpsc_queue cimport mpsc_queue_subject
from pulsar_ml.operations.object_pool cimport object_pool_subject
from pulsar_ml.operations.payload_memory cimport payload_memory_subject
from pulsar_ml.operations.pending_reads cimport pending_reads_subject
from pulsar_ml.operations.position_map cimport position_map_subject
from pulsar_ml.operations.range_cache cimport range_cache_subject
from pulsar_ml.operations.read_count cimport read_count_subject
from pulsar_ml.operations.receive_buffer cimport receive_buffer_subject
from pulsar_ml.operations.refcount cimport refcount_subject
from pulsar_ml.operations.removal_queue cimport removal_queue_subject
from pulsar_ml.operations.stamped_lock cimport stamped_lock_subject
from pulsar_ml.operations.support cimport SubjectTable

cdef extern from *:
    """
    #include "pulsar_ml/sync/sync.h"
    #ifndef PML_BUILD_ID
    #define PML_BUILD_ID "unknown"
    #endif
    #ifdef PML_MUTANTS_HEADER       /* a build with mutants: see the header for the two names */
    #include PML_MUTANTS_HEADER
    #else
    #define PML_MUTANTS ""          /* catalogue ids, apart by spaces */
    #define pml_select_mutant(number) ((void)(number))      /* -1: none */
    #endif
    #ifndef PML_FAULTS
    #error "the operations are built with PML_FAULTS, so that tests can fail an allocation"
    #endif
    """
    const char* PML_BUILD_ID
    const char* PML_MUTANTS
    void pml_select_mutant(int number) noexcept
    void pml_fail_allocation_after(int64_t n) noexcept nogil

ctypedef void (*Filler)(SubjectTable* table) noexcept nogil

cdef enum:
    MOST_SUBJECTS = 64

cdef SubjectTable[64] tables
cdef int n_tables = 0

BUILD_ID = PML_BUILD_ID.decode()
MUTANTS = tuple(PML_MUTANTS.decode().split())


def select_mutant(mutant: str | None) -> None:
    """Make ``mutant`` active, None the unchanged code. ValueError when there is none such."""
    if mutant is not None and mutant not in MUTANTS:
        known = ", ".join(MUTANTS) or "none"
        raise ValueError(f"this build has no mutant {mutant!r}; it has: {known}")
    pml_select_mutant(-1 if mutant is None else MUTANTS.index(mutant))


def fail_allocation_after(n: int) -> None:
    """The native allocation after the next ``n`` fails, once. A negative number: none fails."""
    pml_fail_allocation_after(n)


cdef int add_subject(dict subjects, Filler fill) except -1:
    global n_tables
    if n_tables == MOST_SUBJECTS:
        raise ImportError(f"more than {MOST_SUBJECTS} subjects; enlarge MOST_SUBJECTS and tables")
    fill(&tables[n_tables])
    cdef Subject subject = wrap_subject(&tables[n_tables].subject, BUILD_ID, None)
    subjects[subject.name] = subject
    n_tables += 1
    return 0


cdef dict all_subjects():
    cdef dict subjects = {}
    add_subject(subjects, refcount_subject)
    add_subject(subjects, stamped_lock_subject)
    add_subject(subjects, object_pool_subject)
    add_subject(subjects, payload_memory_subject)
    add_subject(subjects, mpsc_queue_subject)
    add_subject(subjects, read_count_subject)
    add_subject(subjects, entry_subject)
    add_subject(subjects, receive_buffer_subject)
    add_subject(subjects, position_map_subject)
    add_subject(subjects, entry_wrapper_subject)
    add_subject(subjects, range_cache_subject)
    add_subject(subjects, removal_queue_subject)
    add_subject(subjects, inflight_limiter_subject)
    add_subject(subjects, pending_reads_subject)
    add_subject(subjects, active_cursors_subject)
    add_subject(subjects, cursor_heap_subject)
    add_subject(subjects, cache_manager_subject)
    add_subject(subjects, eviction_policy_subject)
    add_subject(subjects, ack_state_subject)
    add_subject(subjects, delayed_tracker_subject)
    add_subject(subjects, delayed_manager_subject)
    return subjects


SUBJECTS = all_subjects()

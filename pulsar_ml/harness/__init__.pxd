# Names that a Cython module of a subject needs: ``from pulsar_ml.harness cimport ...``.
#
# The structs and functions are those of subject.h, the helpers those of subjects/table.pxd; both
# files describe them. A C or C++ module includes "pulsar_ml/harness/subject.h" instead.

from pulsar_ml.harness.subjects.subject cimport (
    PML_ANY_THREAD,
    PML_MAX_ARGUMENTS,
    PML_RESULT_WORDS,
    PML_SUBJECT_ABI,
    PmlArgument,
    PmlCall,
    PmlOperation,
    PmlResult,
    PmlSubject,
    PmlViolation,
    Subject,
    wrap_subject,
)
from pulsar_ml.harness.subjects.table cimport (
    SubjectTable,
    expect_equal,
    operation_argument,
    subject_of,
    table_operation,
    table_setting,
    table_start,
    violate,
)

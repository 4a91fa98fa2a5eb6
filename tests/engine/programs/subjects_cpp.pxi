# The C++ programs of a module as subjects: SUBJECTS[name], THREADS[name]. The module includes this
# file and names the headers of its programs.

from libc.stdint cimport int32_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from "tests/engine/programs/kit.hpp":
    ctypedef struct CppProgram:
        PmlSubject subject
        int32_t threads
    CppProgram[128] cpp_programs
    int n_cpp_programs
    const int _GLIBCXX_RELEASE

cdef int i
LIBSTDCXX = _GLIBCXX_RELEASE
SUBJECTS = {}
THREADS = {}
for i in range(n_cpp_programs):
    subject = wrap_subject(&cpp_programs[i].subject, "programs", None)
    SUBJECTS[subject.name] = subject
    THREADS[subject.name] = cpp_programs[i].threads

// The shared part of the C++ programs of this folder.
#pragma once
#include <cstring>

#include "pulsar_ml/harness/subject.h"

struct CppProgram {
    PmlSubject subject;
    int32_t threads;
};
static CppProgram cpp_programs[128];
static int n_cpp_programs;
static const PmlOperation CPP_RUN = {"run", 1, PML_ANY_THREAD, 0, 0, {}};
static const PmlArgument CPP_NO_SETTING = {};

template <typename State>
__attribute__((no_sanitize("thread"))) static int define_program(const char *name, int threads) {
    CppProgram &p = cpp_programs[n_cpp_programs++];
    p.threads = threads;
    p.subject = {PML_SUBJECT_ABI, 1, 0, threads, name, name, &CPP_RUN, &CPP_NO_SETTING,
                 [](const int64_t *, int32_t) -> void * { return new State; },
                 [](void *s, int32_t t, const PmlCall *, PmlResult *, PmlViolation *v) {
                     if (!static_cast<State *>(s)->run(t) && !v->found) {
                         v->found = 1;
                         std::strcpy(v->invariant, "Q");
                         std::strcpy(v->message, "the program saw what it should not");
                     }
                 },
                 [](void *s, PmlViolation *v) {
                     if constexpr (requires(State *state) { state->check(); }) {
                         if (!static_cast<State *>(s)->check() && !v->found) {
                             v->found = 1;
                             std::strcpy(v->invariant, "Q");
                             std::strcpy(v->message, "the end is not what it should be");
                         }
                     }
                 },
                 [](void *s) { delete static_cast<State *>(s); }};
    return 0;
}

// CPP_PROGRAM(name, threads, fields, body): the body returns whether all is well.
#define CPP_PROGRAM(name, n_threads, fields, ...)                                               \
    struct name##_state { fields bool run([[maybe_unused]] int t) { __VA_ARGS__ return true; } };   \
    static const int name##_defined = define_program<name##_state>(#name, n_threads);

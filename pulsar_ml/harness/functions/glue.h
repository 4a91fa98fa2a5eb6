/* Makes test functions into subjects: a generated file includes a user's file, then this one, and
 * names each function in PML_TEST. Nothing here is instrumented: the engine sees the user's. */
#ifndef PULSAR_ML_FUNCTIONS_GLUE_H
#define PULSAR_ML_FUNCTIONS_GLUE_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <typeinfo>
#include <cxxabi.h>
#else
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#endif
#include "pulsar_ml/harness/subject.h"

#define PML_UNSEEN __attribute__((no_sanitize("thread"), unused))

static char pml_instance; /* what create returns: the tests have no other state than globals */

#ifdef __cplusplus
extern "C" {
#endif
void pml_begin_globals(void); /* of globals.c */
void pml_end_globals(void);
void pml_engine_fail(const char *message);
#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
/* The type and the text of the exception that is handled. */
PML_UNSEEN static void pml_describe_exception(char *text, size_t bytes)
{
    int status = -1;
    const std::type_info *type = abi::__cxa_current_exception_type();
    const char *name = type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, &status) : nullptr;
    name = name ? name : type ? type->name() : "an exception";
    try {
        throw;
    } catch (const std::exception &error) {
        std::snprintf(text, bytes, "%s: %s", name, error.what());
    } catch (abi::__forced_unwind &) {
        throw;
    } catch (...) {
        std::snprintf(text, bytes, "%s", name);
    }
}

/* An exception that nothing catches, in a thread or in a function that is noexcept. */
PML_UNSEEN static void pml_terminate()
{
    char what[180] = "", text[240];
    if (std::current_exception())
        pml_describe_exception(what, sizeof what);
    std::snprintf(text, sizeof text, "std::terminate() was called: %s%s",
                  *what ? "nothing catches " : "without an exception", what);
    pml_engine_fail(text);
    std::abort();
}
#endif

PML_UNSEEN static void *pml_create(const int64_t *settings, int32_t threads)
{
    (void)settings, (void)threads;
#ifdef __cplusplus
    std::set_terminate(pml_terminate);
#endif
    pml_begin_globals();
    return &pml_instance;
}

PML_UNSEEN static void pml_check(void *instance, PmlViolation *violation)
{
    (void)instance, (void)violation;
}

PML_UNSEEN static void pml_destroy(void *instance)
{
    (void)instance;
    pml_end_globals();
}

/* Makes a call; an exception that leaves it is a violation. */
#ifdef __cplusplus
#define PML_GUARDED(call, violation)                                                                  \
    try {                                                                                             \
        call;                                                                                         \
    } catch (abi::__forced_unwind &) {                                                                \
        throw;                                                                                        \
    } catch (...) {                                                                                   \
        (violation)->found = 1;                                                                       \
        std::snprintf((violation)->invariant, sizeof (violation)->invariant, "exception");            \
        pml_describe_exception((violation)->message, sizeof (violation)->message);                    \
    }
#else
#define PML_GUARDED(call, violation) (void)(violation), call
#endif

PML_UNSEEN static void pml_call(void (*test)(void), PmlViolation *violation)
{
    PML_GUARDED(test(), violation);
}

static const PmlOperation PML_RUN = {"test", 1, PML_ANY_THREAD, 0, 0, {{0, 0, 0}}};
static const PmlArgument PML_NO_SETTING = {0, 0, 0};

#define PML_TEST(test, function)                                                                      \
    PML_UNSEEN static void pml_apply_##test(void *instance, int32_t thread, const PmlCall *call,      \
                                            PmlResult *result, PmlViolation *violation)               \
    {                                                                                                 \
        (void)instance, (void)thread, (void)call, (void)result;                                       \
        pml_call(function, violation);                                                                \
    }                                                                                                 \
    static const PmlSubject pml_subject_##test = {                                                    \
        PML_SUBJECT_ABI, 1, 0, 0, #test, #test, &PML_RUN, &PML_NO_SETTING, pml_create,                \
        pml_apply_##test, pml_check, pml_destroy};
#endif

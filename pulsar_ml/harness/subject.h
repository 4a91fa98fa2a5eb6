/* The C-level contract between the harness and a structure under test ("subject").
 *
 * A subject is a table: functions that create, call, check and destroy an instance, and the
 * operations with the ranges of their arguments. The harness knows operations and results, and
 * nothing else. All functions run without the GIL.
 */
#ifndef PULSAR_ML_SUBJECT_H
#define PULSAR_ML_SUBJECT_H

#include <stdint.h>

#define PML_SUBJECT_ABI 1
#define PML_MAX_ARGUMENTS 3
#define PML_RESULT_WORDS 4

/* Who may call an operation. Roles above 0 name an exclusive role: all operations of one role are
 * called by one and the same thread (for example the consumer of a single-consumer queue). */
#define PML_ANY_THREAD 0

typedef struct {
    const char *name;
    int64_t low, high;        /* inclusive range of generated values */
} PmlArgument;

typedef struct {
    const char *name;
    int32_t weight;           /* relative frequency in a default program; 0: only on request */
    int32_t role;             /* PML_ANY_THREAD or the number of an exclusive role */
    int32_t n_arguments;
    int32_t reserved;
    PmlArgument arguments[PML_MAX_ARGUMENTS];
} PmlOperation;

/* One operation of a program. */
typedef struct {
    int32_t code;             /* index into the subject's operations */
    int32_t noise;            /* a pause before the call; see program.py */
    int64_t arguments[PML_MAX_ARGUMENTS];
} PmlCall;

/* The result of an operation. Unused words are 0, so that results compare as bytes. */
typedef struct {
    int64_t status;
    int64_t words[PML_RESULT_WORDS];
} PmlResult;

/* The first broken invariant that a call or a check found; found is 0 or 1. */
typedef struct {
    int32_t found;
    char invariant[28];
    char message[224];
} PmlViolation;

typedef struct {
    uint32_t abi;             /* PML_SUBJECT_ABI */
    int32_t n_operations;
    int32_t n_settings;
    int32_t max_threads;      /* 0: no limit */
    const char *name;
    const char *summary;
    const PmlOperation *operations;
    const PmlArgument *settings;   /* name and range of each creation setting */
    /* NULL when memory ran out. A sweep on real threads creates, checks and destroys several
     * instances at once, each in one thread at a time. */
    void *(*create)(const int64_t *settings, int32_t threads);
    /* May be called by many threads at once, each with its own number in 0..threads-1. */
    void (*apply)(void *instance, int32_t thread, const PmlCall *call, PmlResult *result,
                  PmlViolation *violation);
    /* Called at quiescence: releases what threads still hold, then checks every invariant. */
    void (*check)(void *instance, PmlViolation *violation);
    void (*destroy)(void *instance);
} PmlSubject;

#endif

/* Threads, choices, assumptions, notes and names for functions that pulsar-ml check explores. No
 * test needs this header. In C++ the calls are check::threads() and so on, in C check_threads().
 *
 * Outside a checked build threads are plain threads, choose() is rand() % n, an assumption that does
 * not hold ends the process with exit status 77 ("skipped" for Automake and Meson), and note() and
 * name() do nothing. The header needs C11 or C++11.
 */
#ifndef PULSAR_ML_CHECK_H
#define PULSAR_ML_CHECK_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#else
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Always inlined, so that traces show the caller's line. */
#define PML_CHECK_CALL __attribute__((always_inline, unused)) static inline

/* The kinds of values of a note. */
enum {
    PML_CHECK_NOTHING, PML_CHECK_SIGNED, PML_CHECK_UNSIGNED, PML_CHECK_DOUBLE, PML_CHECK_TEXT,
    PML_CHECK_POINTER
};

#ifdef PML_CHECKED
uint32_t pml_engine_choose(uint32_t options);
void pml_engine_discard(void);
void pml_engine_note(const char *text, int kind, uint64_t value);
void pml_engine_name(const void *at, size_t bytes, const char *text);
#else
PML_CHECK_CALL uint32_t pml_engine_choose(uint32_t options)
{
    return (uint32_t)rand() % options;
}
PML_CHECK_CALL void pml_engine_note(const char *text, int kind, uint64_t value)
{
    (void)text, (void)kind, (void)value;
}
PML_CHECK_CALL void pml_engine_name(const void *at, size_t bytes, const char *text)
{
    (void)at, (void)bytes, (void)text;
}
PML_CHECK_CALL void pml_engine_discard(void)
{
    fputs("an assumption of this test does not hold\n", stderr);
    _Exit(77);
}
#endif

/* A number from 0 to options - 1: the engine tries all, repeats it in a replay, and shrinks it
 * towards 0. `options` is 1 to 65535. */
PML_CHECK_CALL int check_choose(int options)
{
    return (int)pml_engine_choose((uint32_t)options);
}

/* Ends the execution, which then counts for nothing, unless the condition holds. */
PML_CHECK_CALL void check_assume(int holds)
{
    if (!holds)
        pml_engine_discard();
}

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
namespace check {

/* Starts a thread for each function object, and returns when all have ended. */
template <typename... Bodies> void threads(Bodies &&...bodies)
{
    static_assert(sizeof...(bodies) > 0, "check::threads() takes one function object or more");
    std::thread started[] = {std::thread(std::ref(bodies))...};
    for (std::thread &each : started)
        each.join();
}

PML_CHECK_CALL int choose(int options) { return check_choose(options); }
PML_CHECK_CALL void assume(bool holds) { check_assume(holds); }

/* A line of the trace. */
PML_CHECK_CALL void note(const char *text) { pml_engine_note(text, PML_CHECK_NOTHING, 0); }

/* A line of the trace with a value: a number, an enumerator, a pointer or a text. */
template <typename T>
__attribute__((always_inline)) inline
    typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value>::type
    note(const char *text, T value)
{
    pml_engine_note(text, std::is_signed<T>::value || std::is_enum<T>::value ? PML_CHECK_SIGNED
                                                                             : PML_CHECK_UNSIGNED,
                    (uint64_t)value);
}
template <typename T>
__attribute__((always_inline)) inline typename std::enable_if<std::is_floating_point<T>::value>::type
note(const char *text, T value)
{
    double number = (double)value;
    uint64_t bits;
    static_assert(sizeof number == sizeof bits, "a double has 64 bits");
    __builtin_memcpy(&bits, &number, sizeof bits);
    pml_engine_note(text, PML_CHECK_DOUBLE, bits);
}
PML_CHECK_CALL void note(const char *text, const char *value)
{
    pml_engine_note(text, PML_CHECK_TEXT, (uint64_t)(uintptr_t)value);
}
PML_CHECK_CALL void note(const char *text, const std::string &value)
{
    note(text, value.c_str());
}
template <typename T> __attribute__((always_inline)) inline void note(const char *text, T *value)
{
    pml_engine_note(text, PML_CHECK_POINTER, (uint64_t)(uintptr_t)value);
}

/* Names an object in traces, which say "text" and not "m3". */
template <typename T>
__attribute__((always_inline)) inline void name(const T &object, const char *text)
{
    pml_engine_name(std::addressof(object), sizeof object, text);
}

} // namespace check
#else

typedef struct {
    void (*body)(void *);
    void *argument;
} PmlCheckBody;

__attribute__((unused)) static void *pml_check_run(void *of)
{
    PmlCheckBody *each = (PmlCheckBody *)of;
    each->body(each->argument);
    return NULL;
}

enum { PML_CHECK_MOST_THREADS = 62 };

__attribute__((unused)) static void pml_check_threads(void *argument, void (*const *bodies)(void *),
                                                      size_t count)
{
    pthread_t threads[PML_CHECK_MOST_THREADS];
    PmlCheckBody started[PML_CHECK_MOST_THREADS];
    for (size_t i = 0; i < count; i++) {
        started[i].body = bodies[i];
        started[i].argument = argument;
        if (pthread_create(&threads[i], NULL, pml_check_run, &started[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

#define PML_CHECK_BODIES(...) ((void (*const[])(void *)){__VA_ARGS__})
#define PML_CHECK_COUNT(...) (sizeof PML_CHECK_BODIES(__VA_ARGS__) / sizeof(void (*)(void *)))

/* check_threads(argument, first, second, ...): calls void first(void *argument) and the others, each
 * in a thread of its own, and returns when all have ended. */
#define check_threads(argument, ...)                                                               \
    do {                                                                                           \
        _Static_assert(PML_CHECK_COUNT(__VA_ARGS__) <= PML_CHECK_MOST_THREADS,                     \
                       "check_threads() starts at most 62 threads");                               \
        pml_check_threads(argument, PML_CHECK_BODIES(__VA_ARGS__), PML_CHECK_COUNT(__VA_ARGS__));  \
    } while (0)

PML_CHECK_CALL void pml_check_note_double(const char *text, double value)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    pml_engine_note(text, PML_CHECK_DOUBLE, bits);
}
PML_CHECK_CALL void pml_check_note_signed(const char *text, long long value)
{
    pml_engine_note(text, PML_CHECK_SIGNED, (uint64_t)value);
}
PML_CHECK_CALL void pml_check_note_unsigned(const char *text, unsigned long long value)
{
    pml_engine_note(text, PML_CHECK_UNSIGNED, value);
}
PML_CHECK_CALL void pml_check_note_text(const char *text, const char *value)
{
    pml_engine_note(text, PML_CHECK_TEXT, (uint64_t)(uintptr_t)value);
}
PML_CHECK_CALL void pml_check_note_pointer(const char *text, const void *value)
{
    pml_engine_note(text, PML_CHECK_POINTER, (uint64_t)(uintptr_t)value);
}

/* check_note("text", value): a line of the trace; the value is a number, a pointer or a text. */
#define check_note(text, value)                                                                    \
    _Generic((value),                                                                              \
        float: pml_check_note_double,                                                              \
        double: pml_check_note_double,                                                             \
        char *: pml_check_note_text,                                                               \
        const char *: pml_check_note_text,                                                         \
        _Bool: pml_check_note_unsigned,                                                            \
        unsigned char: pml_check_note_unsigned,                                                    \
        unsigned short: pml_check_note_unsigned,                                                   \
        unsigned: pml_check_note_unsigned,                                                         \
        unsigned long: pml_check_note_unsigned,                                                    \
        unsigned long long: pml_check_note_unsigned,                                               \
        char: pml_check_note_signed,                                                               \
        signed char: pml_check_note_signed,                                                        \
        short: pml_check_note_signed,                                                              \
        int: pml_check_note_signed,                                                                \
        long: pml_check_note_signed,                                                               \
        long long: pml_check_note_signed,                                                          \
        default: pml_check_note_pointer)(text, value)

/* check_name(object, "text"): names an object in traces. */
#define check_name(object, text) pml_engine_name((const void *)&(object), sizeof(object), text)
#endif
#endif

/* Makes the methods of a structure operations: conversions of arguments and answers. A generated
 * file includes the structure, then this one. The conversions are instrumented, so that reading
 * what a method returned by reference is seen as the access that it is. */
#ifndef PULSAR_ML_SIGNATURES_H
#define PULSAR_ML_SIGNATURES_H

#ifdef PML_PLAIN /* a build for real threads: without the engine, globals keep their values */
#define pml_begin_globals pml_no_globals
#define pml_end_globals pml_no_globals
#define pml_engine_fail pml_no_failure
#endif
#include "pulsar_ml/harness/functions/glue.h"
#ifdef PML_PLAIN
#undef pml_begin_globals
#undef pml_end_globals
#undef pml_engine_fail
PML_UNSEEN __attribute__((visibility("hidden"))) void pml_no_globals(void) {}
PML_UNSEEN __attribute__((visibility("hidden"))) void pml_no_failure(const char *message)
{
    fprintf(stderr, "%s\n", message);
}
PML_UNSEEN static void pml_engine_name(const void *at, size_t bytes, const char *text)
{
    (void)at, (void)bytes, (void)text;
}
#elif defined(__cplusplus)
extern "C" void pml_engine_name(const void *at, size_t bytes, const char *text);
#else
void pml_engine_name(const void *at, size_t bytes, const char *text);
#endif

static int pml_is_named; /* in this execution */

/* Names the structure in traces. */
PML_UNSEEN static void pml_name_object(const void *at, size_t bytes, const char *name)
{
    if (!pml_is_named)
        pml_engine_name(at, bytes, name);
    pml_is_named = 1;
}

/* The status of an answer; from PML_TUPLE on it counts the words. See answers.py. */
enum { PML_NOTHING, PML_WORD, PML_FLAG, PML_TUPLE };

static inline void pml_put_word(PmlResult *result, int64_t word)
{
    result->status = PML_WORD;
    result->words[0] = word;
}

static inline void pml_put_flag(PmlResult *result, int flag)
{
    result->status = PML_FLAG;
    result->words[0] = flag != 0;
}

/* Adds a word to the answer: nothing becomes a word, a word a pair, and so on. */
static inline void pml_add_word(PmlResult *result, int64_t word)
{
    int64_t count = result->status == PML_NOTHING                              ? 0
                    : result->status == PML_WORD || result->status == PML_FLAG ? 1
                                                                               : result->status - PML_TUPLE;
    result->words[count] = word;
    result->status = count ? PML_TUPLE + count + 1 : PML_WORD;
}

#ifdef __cplusplus
#include <string>
#include <type_traits>
#include <utility>

struct PmlVoid {};
/* `call, PmlVoid()` is what the call returns, or a PmlVoid. */
template <class T> T &&operator,(T &&value, PmlVoid) { return std::forward<T>(value); }

/* An argument of type T from the integer that the engine drew. */
template <class T, class = void> struct PmlArgumentOf {
    static_assert(std::is_constructible<T, int64_t>::value,
                  "pulsar_ml: the engine draws integers, and this argument's type cannot be made from one");
    static T from(int64_t value) { return static_cast<T>(value); }
};
template <> struct PmlArgumentOf<void *> {
    static void *from(int64_t value) { return reinterpret_cast<void *>(value); }
};
template <> struct PmlArgumentOf<std::string> {
    static std::string from(int64_t value) { return std::to_string(value); }
};

template <class T> using PmlBare = typename std::remove_cv<typename std::remove_reference<T>::type>::type;

/* The integer for a value that a method returned or wrote. */
inline int64_t pml_integer(const std::string &value) { return std::stoll(value); }
inline int64_t pml_integer(const void *value) { return reinterpret_cast<intptr_t>(value); }
template <class T>
auto pml_integer(const T &value) ->
    typename std::enable_if<!std::is_pointer<T>::value && !std::is_same<T, std::string>::value,
                            decltype(static_cast<int64_t>(value))>::type
{
    return static_cast<int64_t>(value);
}

/* Answers: the first of these overloads that fits, by the rank of its last parameter. */
template <int N> struct PmlRank : PmlRank<N - 1> {};
template <> struct PmlRank<0> {};

template <class T> void pml_put(PmlResult *result, T &&value);

inline void pml_ranked(PmlResult *, PmlVoid, PmlRank<6>) {}
template <class T> /* a pair whose first part says whether there is a second */
auto pml_ranked(PmlResult *result, T &&value, PmlRank<5>) ->
    typename std::enable_if<std::is_same<PmlBare<decltype(value.first)>, bool>::value>::type
{
    if (value.first)
        pml_put(result, value.second);
}
template <class T> /* optional, expected, pointers smart and plain: empty, or a value */
auto pml_ranked(PmlResult *result, T &&value, PmlRank<4>) ->
    typename std::enable_if<!std::is_arithmetic<PmlBare<T>>::value &&
                            sizeof(decltype(*value)) != 0 &&
                            std::is_constructible<bool, T>::value>::type
{
    if (value)
        pml_put(result, *value);
}
inline void pml_ranked(PmlResult *result, const void *value, PmlRank<3>)
{
    if (value)
        pml_put_word(result, reinterpret_cast<intptr_t>(value));
}
template <class T>
auto pml_ranked(PmlResult *result, T &&value, PmlRank<2>) -> decltype(void(pml_integer(value)))
{
    pml_put_word(result, pml_integer(value));
}
template <class T> void pml_ranked(PmlResult *, T &&, PmlRank<1>)
{
    static_assert(!sizeof(T *), "pulsar_ml: no conversion from this result's type to an integer");
}

template <class T> void pml_put(PmlResult *result, T &&value)
{
    pml_ranked(result, std::forward<T>(value), PmlRank<6>());
}
inline void pml_put(PmlResult *result, bool &&value) { pml_put_flag(result, value); }
inline void pml_put(PmlResult *result, bool &value) { pml_put_flag(result, value); }
inline void pml_put(PmlResult *result, const bool &value) { pml_put_flag(result, value); }

inline void pml_add_words(PmlResult *) {}
template <class First, class... More>
void pml_add_words(PmlResult *result, const First &first, const More &...more)
{
    pml_add_word(result, pml_integer(first));
    pml_add_words(result, more...);
}

/* Answers of methods that write values: false means that they wrote none. */
template <class... Written>
void pml_answer(PmlResult *result, bool &&wrote, const Written &...written)
{
    if (sizeof...(written) == 0)
        pml_put_flag(result, wrote);
    else if (wrote)
        pml_add_words(result, written...);
}
template <class T, class... Written>
void pml_answer(PmlResult *result, T &&returned, const Written &...written)
{
    pml_put(result, std::forward<T>(returned));
    pml_add_words(result, written...);
}
#endif

typedef void (*PmlOperationFunction)(void *instance, const int64_t *arguments, PmlResult *result);

PML_UNSEEN static void pml_apply_one(PmlOperationFunction operation, void *instance,
                                     const int64_t *arguments, PmlResult *result,
                                     PmlViolation *violation)
{
    PML_GUARDED(operation(instance, arguments, result), violation);
}
#endif

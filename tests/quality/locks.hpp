// Small programs with the locks and threads of the C++ library.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>

#include "pulsar_ml/harness/subject.h"

struct CppProgram {
    PmlSubject subject;
    int32_t threads;
};
static CppProgram cpp_programs[64];
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
                 [](void *, PmlViolation *) {}, [](void *s) { delete static_cast<State *>(s); }};
    return 0;
}

// CPP_PROGRAM(name, threads, fields, body): the body returns whether all is well.
#define CPP_PROGRAM(name, n_threads, fields, ...)                                               \
    struct name##_state { fields bool run([[maybe_unused]] int t) { __VA_ARGS__ return true; } };   \
    static const int name##_defined = define_program<name##_state>(#name, n_threads);

#define DATA long x = 0; std::atomic<long> touched{0};
CPP_PROGRAM(std_unlocked, 2, std::mutex m; DATA, touched++; if (t) m.lock(); x++; if (t) m.unlock();)
CPP_PROGRAM(std_mutex_fixed, 2, std::mutex m; DATA, { std::lock_guard<std::mutex> held(m); touched++; x++; })
CPP_PROGRAM(std_recursive_fixed, 2, std::recursive_mutex m; DATA,
            { std::lock_guard<std::recursive_mutex> a(m); std::lock_guard<std::recursive_mutex> b(m); x++; })
CPP_PROGRAM(std_ab_ba, 2, std::mutex m[2];, m[t].lock(); m[1 - t].lock(); m[0].unlock(); m[1].unlock();)
CPP_PROGRAM(std_ab_ba_fixed, 2, std::mutex m[2];, { std::scoped_lock held(m[t], m[1 - t]); })

#define CONDITION std::mutex m; std::condition_variable c; bool ready = false; std::atomic<bool> seen{false};
#define NOTIFY { std::lock_guard<std::mutex> held(m); ready = true; seen = true; c.notify_one(); }
CPP_PROGRAM(std_wake_lost, 2, CONDITION,
            if (t == 0) NOTIFY else if (!seen) { std::unique_lock<std::mutex> held(m); c.wait(held); })
CPP_PROGRAM(std_wake_lost_fixed, 2, CONDITION,
            if (t == 0) NOTIFY else { std::unique_lock<std::mutex> held(m); c.wait(held, [&] { return ready; }); })
CPP_PROGRAM(std_wake_late, 2, CONDITION,
            if (t == 0) NOTIFY else { std::unique_lock<std::mutex> held(m);
                if (!ready) c.wait_for(held, std::chrono::seconds(1)); if (!ready) return false; })
CPP_PROGRAM(std_wake_late_fixed, 2, CONDITION,
            if (t == 0) NOTIFY else { std::unique_lock<std::mutex> held(m);
                c.wait_for(held, std::chrono::seconds(1), [&] { return ready; }); })

CPP_PROGRAM(std_shared_reads, 2, std::shared_mutex m; DATA,
            std::shared_lock<std::shared_mutex> held(m); touched++; if (t == 0) x++; else if (x > 1) return false;)
CPP_PROGRAM(std_shared_fixed, 2, std::shared_mutex m; DATA,
            if (t == 0) { std::unique_lock<std::shared_mutex> held(m); touched++; x++; }
            else { std::shared_lock<std::shared_mutex> held(m); touched++; if (x > 1) return false; })

#define RUNS_THREAD(before) { touched++; std::thread other([&] { x++; }); before; other.join(); x++; }
CPP_PROGRAM(std_thread_race, 1, DATA, RUNS_THREAD(x++))
CPP_PROGRAM(std_thread_fixed, 1, DATA, RUNS_THREAD())

CPP_PROGRAM(std_semaphore_fixed, 2, std::counting_semaphore<4> full{0}; DATA,
            touched++; if (t == 0) { x = 1; full.release(); } else { full.acquire(); if (x != 1) return false; })
CPP_PROGRAM(std_notify_fixed, 2, std::atomic<int> flag{0};,
            if (t == 0) { flag = 1; flag.notify_one(); } else flag.wait(0);)

// Programs over the C++ structures of this folder, wrong and, as NAME_fixed, right.
#pragma once
#include <memory>
#include <stop_token>
#include <thread>

#include "tests/engine/programs/kit.hpp"
#include "tests/engine/strangers/hazard.hpp"
#include "tests/engine/strangers/implicit_queue.hpp"
#include "tests/engine/strangers/pool.hpp"

// Two threads of the program enqueue and dequeue; values of one producer come out in order, each
// once.
#define QUEUE(name, publish)                                                                    \
    CPP_PROGRAM(name, 3, ImplicitQueue<std::unique_ptr<long> COMMA publish> queue; std::atomic<long> taken{0};   \
                bool check() {                                                                  \
                    std::unique_ptr<long> left; while (queue.dequeue(left)) taken += *left;     \
                    return taken == 1 + 2 + 11 + 12 && queue.producers() <= 2; },               \
                if (t < 2) { queue.enqueue(std::make_unique<long>(10 * t + 1));                 \
                             queue.enqueue(std::make_unique<long>(10 * t + 2)); return true; }  \
                long last[2] = {0 COMMA 10};                                                    \
                for (int i = 0; i < 3; i++) { std::unique_ptr<long> value;                      \
                    if (!queue.dequeue(value)) continue;                                        \
                    if (!value || *value <= last[*value / 10]) return false;                    \
                    last[*value / 10] = *value; taken += *value; })
#define COMMA ,
QUEUE(implicit_relaxed, std::memory_order_relaxed)
QUEUE(implicit_fixed, std::memory_order_release)

// Threads that end leave their sub-queues to the next ones.
CPP_PROGRAM(implicit_recycled_fixed, 1, ImplicitQueue<long> queue;
            bool check() { long value = 0; long sum = 0; while (queue.dequeue(value)) sum += value;
                           return sum == 6 && queue.producers() == 1; },
            for (long i = 1; i <= 3; i++) { std::thread one([&] { queue.enqueue(i); }); one.join(); })
CPP_PROGRAM(implicit_threads_fixed, 1, ImplicitQueue<long> queue;
            bool check() { long value = 0; long sum = 0; while (queue.dequeue(value)) sum += value; return sum == 3; },
            std::thread a([&] { queue.enqueue(1); }); std::thread b([&] { queue.enqueue(2); });
            long value = 0; if (queue.dequeue(value)) queue.enqueue(value);
            a.join(); b.join();)

// One thread replaces an object that the others look at.
#define HAZARDS(name, fenced, hands_over)                                                       \
    CPP_PROGRAM(name, 3, HazardDomain<fenced COMMA hands_over> domain; std::atomic<long *> shown{new long(1)};   \
                ~name##_state() { delete shown.load(); },                                       \
                if (t) { long *seen = domain.protect(shown); if (*seen < 1 || *seen > 3) return false; domain.clear(); } \
                else for (long i = 2; i <= 3; i++)                                              \
                    domain.retire(shown.exchange(new long(i), std::memory_order_acq_rel));)
HAZARDS(hazard_unfenced, false, true)
HAZARDS(hazard_forgotten, true, false)
HAZARDS(hazard_fixed, true, true)

CPP_PROGRAM(pool_unwoken, 1, long x = 0;,
            Pool<false> pool(1); auto f = pool.submit([&] { x = 1; return 2; }); if (f.get() != 2) return false;)
CPP_PROGRAM(pool_fixed, 1, long x = 0;,
            Pool<true> pool(2); auto f = pool.submit([&] { x = 1; return 2; });
            auto g = pool.submit([] { return 3; });
            if (f.get() + g.get() != 5 || x != 1) return false;)

#define BUFFER(name, semaphore, locks)                                                          \
    CPP_PROGRAM(name, 3, BoundedBuffer<long COMMA 1 + !locks COMMA semaphore COMMA locks> buffer;   \
                std::atomic<long> sum{0};,                                                      \
                if (t) { buffer.put(t); buffer.put(t + 1); }                                    \
                else { for (int i = 0; i < 4; i++) sum += buffer.get(); if (sum != 8) return false; })
BUFFER(buffer_unlocked, WaitingSemaphore, false)
BUFFER(buffer_fixed, WaitingSemaphore, true)
BUFFER(buffer_of_library, std::counting_semaphore<4>, true)

// Programs over Boost.Lockfree, wrong and, as NAME_fixed, right.
#pragma once
#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>
#include <boost/lockfree/stack.hpp>
#include <boost/version.hpp>
#include <thread>

#include "tests/engine/programs/kit.hpp"

#define COMMA ,
namespace lockfree = boost::lockfree;

// Two threads push, one pops; the values of one producer come out in order, each once.
#define QUEUE(name, insert)                                                                      \
    CPP_PROGRAM(name, 3, lockfree::queue<long> queue{4}; std::atomic<long> taken{0};                             \
                bool check() { long left = 0; while (queue.pop(left)) taken += left;            \
                               return taken == 1 + 2 + 11 + 12; },                              \
                if (t < 2) { queue.insert(10 * t + 1); queue.insert(10 * t + 2); return true; }     \
                long last[2] = {0 COMMA 10};                                                    \
                for (int i = 0; i < 3; i++) { long value = 0;                                   \
                    if (!queue.pop(value)) continue;                                            \
                    if (value <= last[value / 10]) return false;                                \
                    last[value / 10] = value; taken += value; })
QUEUE(queue_fixed, push)
QUEUE(queue_unsynchronized, unsynchronized_push)

// As many nodes as the queue was made with, which are indices instead of pointers.
CPP_PROGRAM(bounded_queue_fixed, 3, lockfree::queue<long COMMA lockfree::capacity<2>> queue;
            std::atomic<long> pushed{0}; std::atomic<long> taken{0};
            bool check() { long left = 0; while (queue.pop(left)) taken += left; return taken == pushed; },
            for (long i = 1; i <= 2; i++) if (queue.push(10 * t + i)) pushed += 10 * t + i;
            long value = 0; if (queue.pop(value)) taken += value;)

#define STACK(name, take)                                                                       \
    CPP_PROGRAM(name, 3, lockfree::stack<long> stack{4}; std::atomic<long> taken{0};            \
                bool check() { long left = 0; while (stack.pop(left)) taken += left;            \
                               return taken == 1 + 2 + 3; },                                    \
                stack.push(t + 1); long value = 0; if (stack.take(value)) taken += value;)
STACK(stack_fixed, pop)
STACK(stack_unsynchronized, unsynchronized_pop)

#define SPSC(name, producers)                                                                   \
    CPP_PROGRAM(name, 1 + producers, lockfree::spsc_queue<long COMMA lockfree::capacity<2>> queue; \
                std::atomic<long> left{0};,                                                     \
                if (t) { for (long i = 1; i <= 3; i++) while (!queue.push(i)) std::this_thread::yield(); } \
                else for (long i = 1; i <= 3 * producers; i++) { long value = 0;                \
                    while (!queue.pop(value)) std::this_thread::yield();                        \
                    if (producers == 1 && value != i) return false; })
SPSC(spsc_fixed, 1)
SPSC(spsc_two_producers, 2)

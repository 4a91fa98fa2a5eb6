// Small C++ programs about what belongs to one thread, what happens once, and the primitives of
// C++20: wrong and, as NAME_fixed, right.
#pragma once
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/programs/kit.hpp"

using std::atomic;
using Lock = std::lock_guard<std::mutex>;
#define TOUCHED atomic<long> touched{0};

// Thread-local variables
// -------------------------------------------------------------------------------

inline atomic<long> nobody{0};
struct Counted {                  // counts how many live, in a place that the last state gives
    static inline atomic<long> *alive = &nobody;
    std::vector<long> own{1, 2, 3};
    Counted() { ++*alive; }
    ~Counted() { --*alive; }
};
inline thread_local Counted counted;
CPP_PROGRAM(local_objects_fixed, 3, atomic<long> alive{0}; atomic<long> most{0};
            local_objects_fixed_state() { Counted::alive = &alive; }
            ~local_objects_fixed_state() { Counted::alive = &nobody; }
            bool check() { return alive == 0 && most >= 1; },
            counted.own.push_back(t); ++most;
            if (counted.own.size() != 4 || counted.own[3] != t) return false;)
CPP_PROGRAM(local_threads_fixed, 1, atomic<long> alive{0};
            local_threads_fixed_state() { Counted::alive = &alive; }
            ~local_threads_fixed_state() { Counted::alive = &nobody; },
            std::thread other([&] { counted.own.push_back(1); });
            other.join(); if (alive != 0) return false;
            if (counted.own.size() != 3 || alive != 1) return false;)

// Each thread keeps a list of its own nodes; the nodes are given back when the thread ends.
struct Node { long value; Node *next; };
template <bool GIVES_BACK> struct Cache {
    Node *first = nullptr;
    Node *take() { Node *n = first ? first : new Node; first = first ? n->next : nullptr; return n; }
    void put(Node *n) { n->next = first; first = n; }
    ~Cache() { while (GIVES_BACK && first) { Node *n = first; first = n->next; delete n; } }
};
inline thread_local Cache<false> keeping;
inline thread_local Cache<true> giving;
#define CACHING(name, cache)                                                                    \
    CPP_PROGRAM(name, 2, TOUCHED,                                                               \
                Node *n = cache.take(); n->value = t; touched++;                    \
                if (n->value != t) return false;                                                \
                cache.put(n); touched++; Node *m = cache.take();        \
                if (m != n) return false;                                                       \
                cache.put(m);)
CACHING(cache_kept, keeping)
CACHING(cache_fixed, giving)

// Exceptions in flight
// ---------------------------------------------------------------------------------

// The library allocates an exception where the one before, of another thread, was freed.
CPP_PROGRAM(thrown_fixed, 2, TOUCHED, try { throw t; } catch (int) {} touched++;)
CPP_PROGRAM(rethrown_fixed, 3, TOUCHED,
            int caught = 0;
            try {
                try { throw std::runtime_error(std::string("of thread ") + char('0' + t)); }
                catch (const std::runtime_error &) {
                    touched++;
                    try { touched++; throw t; }
                    catch (int mine) { touched++; if (mine != t) return false; }
                    touched++;
                    throw;
                }
            } catch (const std::exception &e) { touched++; caught = e.what()[10] - '0' == t; }
            if (!caught || std::uncaught_exceptions() || std::current_exception()) return false;)
struct Unwinds {
    atomic<long> &touched; int t; bool &right;
    ~Unwinds() { touched++; right = std::uncaught_exceptions() == 1; touched++; }
};
CPP_PROGRAM(uncaught_fixed, 2, TOUCHED,
            bool right = false;
            if (t) { try { Unwinds u{touched, t, right}; throw 1; } catch (int) { touched++; } }
            else { touched++; right = std::uncaught_exceptions() == 0; touched++; }
            if (!right) return false;)

// Once
// -------------------------------------------------------------------------------------------------

CPP_PROGRAM(call_once_fixed, 3, std::once_flag once; long instance = 0; TOUCHED,
            touched++; std::call_once(once, [&] { touched++; instance++; touched++; });
            if (instance != 1) return false;)
CPP_PROGRAM(call_once_throws_fixed, 3, std::once_flag once; long tries = 0; TOUCHED,
            bool failed = false;
            try { std::call_once(once, [&] { touched++; if (++tries == 1) throw 1; touched++; }); }
            catch (int) { failed = true; }
            if (!failed && tries != 2) return false;)
struct Config {
    static inline std::mutex m;
    std::string text; long sum = 0;
    Config() { Lock held(m); text.assign(40, 'x'); for (char c : text) sum += c; }
};
static Config &config() { static Config instance; return instance; }
CPP_PROGRAM(static_local_fixed, 3, TOUCHED,
            touched++; if (config().text.size() != 40 || config().sum != 40 * 'x') return false;)
struct Recursive { Recursive(); long x = 1; };
static Recursive &recursive() { static Recursive instance; return instance; }
inline Recursive::Recursive() { if (&recursive() == this) x = 2; }
CPP_PROGRAM(static_local_in_itself, 2, TOUCHED, touched++; if (recursive().x != 1) return false;)
CPP_PROGRAM(checked_by_hand, 2, atomic<long *> at{nullptr}; std::mutex m; ~checked_by_hand_state() { delete at.load(); },
            long *instance = at.load(std::memory_order_relaxed);
            if (!instance) { Lock held(m); instance = at.load(std::memory_order_relaxed);
                if (!instance) { instance = new long(7); at.store(instance, std::memory_order_relaxed); } }
            if (*instance != 7) return false;)
CPP_PROGRAM(checked_by_hand_fixed, 2,
            atomic<long *> at{nullptr}; std::mutex m; ~checked_by_hand_fixed_state() { delete at.load(); },
            long *instance = at.load(std::memory_order_acquire);
            if (!instance) { Lock held(m); instance = at.load(std::memory_order_relaxed);
                if (!instance) { instance = new long(7); at.store(instance, std::memory_order_release); } }
            if (*instance != 7) return false;)

// Futures
// ----------------------------------------------------------------------------------------------

CPP_PROGRAM(promise_fixed, 2, std::promise<long> p; long x = 0; TOUCHED,
            touched++; if (t == 0) { x = 4; p.set_value(5); } else if (p.get_future().get() != 5 || x != 4) return false;)
CPP_PROGRAM(promise_early, 2, std::promise<long> p; long x = 0; TOUCHED,
            touched++; if (t == 0) { p.set_value(5); x = 4; }
            else if (p.get_future().get() != 5 || x != 4) return false;)
CPP_PROGRAM(promise_broken, 2, std::promise<long> p; std::shared_future<long> f{p.get_future()}; TOUCHED,
            touched++; if (t == 0) { std::promise<long> gone(std::move(p)); touched++; } else {
                try { f.get(); return false; } catch (const std::future_error &) {} return false; })
CPP_PROGRAM(promise_unkept, 2, std::promise<long> p; TOUCHED,
            touched++; if (t == 1) p.get_future().wait();)
CPP_PROGRAM(task_fixed, 2, std::packaged_task<long(long)> task{[](long x) { return x + 1; }};
            std::shared_future<long> f{task.get_future()}; TOUCHED,
            touched++; if (t == 0) task(6); else if (f.get() != 7) return false;)
CPP_PROGRAM(async_fixed, 1, long x = 0; TOUCHED,
            auto f = std::async(std::launch::async, [&] { touched++; x = 3; return 8; });
            touched++; if (f.get() != 8 || x != 3) return false;
            auto lazy = std::async(std::launch::deferred, [&] { return ++x; });
            if (lazy.get() != 4) return false;
            auto fails = std::async(std::launch::async, [&]() -> long { touched++; throw 5; });
            try { fails.get(); return false; } catch (int e) { if (e != 5) return false; })
CPP_PROGRAM(async_race, 1, long x = 0; TOUCHED,
            auto f = std::async(std::launch::async, [&] { touched++; x = 3; return 8; });
            x = 1; if (f.get() != 8) return false;)

// Meeting
// ----------------------------------------------------------------------------------------------

CPP_PROGRAM(barrier_fixed, 3, std::barrier<> b{3}; long x[3] = {}; TOUCHED,
            for (long round = 1; round < 3; round++) {
                x[t] = round; b.arrive_and_wait();
                if (x[(t + 1) % 3] != round) return false; b.arrive_and_wait(); })
CPP_PROGRAM(barrier_left_out, 3, std::barrier<> b{3}; long x[3] = {}; TOUCHED,
            x[t] = 1; if (t) b.arrive_and_wait(); else (void)b.arrive();
            if (x[(t + 1) % 3] != 1) return false;)
CPP_PROGRAM(latch_fixed, 3, std::latch l{2}; long x[2] = {}; TOUCHED,
            if (t < 2) { x[t] = 1; l.count_down(); } else { l.wait(); if (x[0] + x[1] != 2) return false; })
CPP_PROGRAM(latch_short, 3, std::latch l{3}; TOUCHED, if (t < 2) l.count_down(); else l.wait();)
CPP_PROGRAM(jthread_fixed, 1, long x = 0; std::mutex m; std::condition_variable_any c; TOUCHED,
            { std::jthread other([&](std::stop_token stop) {
                  std::unique_lock<std::mutex> held(m);
                  c.wait(held, stop, [] { return false; }); x = 1; });
              touched++; }
            if (x != 1) return false;)
CPP_PROGRAM(timed_shared_fixed, 2, std::shared_timed_mutex m; long x = 0; TOUCHED,
            if (t) { std::unique_lock<std::shared_timed_mutex> held(m); x++; touched++; }
            else { std::shared_lock<std::shared_timed_mutex> held(m); touched++; if (x > 1) return false; })
CPP_PROGRAM(exit_notified_fixed, 1, std::mutex m; std::condition_variable c; bool done = false; TOUCHED,
            std::thread other([&] { std::unique_lock<std::mutex> held(m); done = true;
                                    std::notify_all_at_thread_exit(c, std::move(held)); touched++; });
            { std::unique_lock<std::mutex> held(m); c.wait(held, [&] { return done; }); }
            other.join();)
// A promise that is kept at the end of its thread, behind the destructors of the thread's
// variables.
struct Leaves { long *x = nullptr; ~Leaves() { if (x) *x = 7; } };
static thread_local Leaves leaves;
#define KEPT_AT_EXIT(name, keep, ...)                                                               \
    CPP_PROGRAM(name, 1, long x = 0; TOUCHED,                                                   \
                std::promise<long> p; auto f = p.get_future();                                  \
                std::thread other([&, p = std::move(p)]() mutable { touched++; leaves.x = &x; keep; touched++; }); \
                __VA_ARGS__; other.join();)
KEPT_AT_EXIT(kept_at_exit_fixed, p.set_value_at_thread_exit(5), touched++; if (f.get() != 5 || x != 7) return false)
KEPT_AT_EXIT(kept_too_early, p.set_value(5), touched++; if (f.get() != 5 || x != 7) return false)
KEPT_AT_EXIT(kept_unread_fixed, p.set_value_at_thread_exit(5), { auto gone = std::move(f); })
KEPT_AT_EXIT(kept_wrong_fixed, p.set_exception_at_thread_exit(std::make_exception_ptr(5)),
             try { f.get(); return false; } catch (int e) { if (e != 5 || x != 7) return false; })
CPP_PROGRAM(kept_by_task_fixed, 1, long x = 0; TOUCHED,
            std::packaged_task<long()> task([&] { touched++; x = 1; return 5L; }); auto f = task.get_future();
            std::thread other([&] { leaves.x = &x; task.make_ready_at_thread_exit(); touched++; });
            if (f.get() != 5 || x != 7) return false; other.join();)
CPP_PROGRAM(joined_at_end_fixed, 1, std::thread other; long x = 0; TOUCHED ~joined_at_end_fixed_state() { other.join(); },
            touched++; other = std::thread([&] { touched++; x++; });)
CPP_PROGRAM(not_joined, 1, long x = 0; TOUCHED, touched++; std::thread other([&] { touched++; x++; });)

// Shared pointers
// --------------------------------------------------------------------------------------

#define POINTERS(name, kind, store, load)                                                       \
    CPP_PROGRAM(name, 3, kind p{std::make_shared<long>(1)};,                                    \
                if (t == 0) { store; } else { std::shared_ptr<long> seen = load;                \
                    if (*seen != 1 && *seen != 2) return false; })
#define PLAIN_POINTER std::shared_ptr<long>
POINTERS(pointer_bare, PLAIN_POINTER, p = std::make_shared<long>(2), p)
POINTERS(pointer_fixed, PLAIN_POINTER, std::atomic_store(&p, std::make_shared<long>(2)), std::atomic_load(&p))
#define ATOMIC_POINTER atomic<std::shared_ptr<long>>
POINTERS(atomic_pointer_fixed, ATOMIC_POINTER, p.store(std::make_shared<long>(2)), p.load())
CPP_PROGRAM(weak_pointer_fixed, 2, std::shared_ptr<long> p = std::make_shared<long>(1); std::weak_ptr<long> w{p}; TOUCHED,
            touched++; if (t == 0) p.reset(); else if (auto q = w.lock()) { touched++; if (*q != 1) return false; })

// Memory
// -----------------------------------------------------------------------------------------------

struct alignas(128) Wide { long x = 1; };
CPP_PROGRAM(aligned_freed, 2, atomic<Wide *> w{new Wide}; ~aligned_freed_state() { delete w.load(); },
            Wide *mine = w.load(); if (reinterpret_cast<uintptr_t>(mine) % 128) return false;
            if (t) { w.store(new Wide); delete mine; } else if (mine->x != 1) return false;)
CPP_PROGRAM(aligned_fixed, 2, TOUCHED, std::unique_ptr<Wide> w(new Wide); Wide *many = new (std::nothrow) Wide[2];
            touched++; if (reinterpret_cast<uintptr_t>(w.get()) % 128 || w->x != 1) return false; delete[] many;)

// Memory crosses the border of libstdc++, whose own code is not redirected.
CPP_PROGRAM(strings_fixed, 2, TOUCHED std::string kept{std::string(50, 'k')};,
            std::string s(40, 'x'); touched++; s += std::string(80, 'y'); s.insert(3, 100, 'z'); s.reserve(900);
            std::istringstream in(s + "\n" + kept); std::string line(30, 'l'); std::getline(in, line); touched++;
            std::string moved = std::move(s); moved.append(line).replace(0, 2, std::string(60, 'r'));
            std::ostringstream out; out << moved << t; std::string copy = out.str(); touched++;
            std::vector<std::string> all{copy, moved, line}; std::sort(all.begin(), all.end());
            if (line.size() != 220 || copy.size() != moved.size() + 1) return false;
            try { throw std::out_of_range(moved); } catch (const std::exception &e) { if (moved != e.what()) return false; })

// Small programs with the locks and threads of the C++ library.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>

#include "tests/engine/programs/kit.hpp"

// Time: a wait that nobody ends ends by its deadline, and every clock says so. The semaphore polls
// the clock.
using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;
using System = std::chrono::system_clock;
#define TIMED(name, most, wait)                                                                    \
    CPP_PROGRAM(name, 2, std::timed_mutex m; std::shared_timed_mutex l; std::counting_semaphore<4> full{0}; \
                std::mutex guard; std::condition_variable c; std::atomic<long> touched{0};,                 \
                touched++; if (t == 0) return true;                                             \
                auto begun = Steady::now(); auto at = System::now(); wait;                       \
                auto spent = Steady::now() - begun; auto passed = System::now() - at;                    \
                if (spent < milliseconds(10) || spent > milliseconds(most)) return false;         \
                if (passed < milliseconds(10) || passed > milliseconds(most)) return false;)
#define GUARDED std::unique_lock<std::mutex> held(guard)
TIMED(std_wait_for_fixed, 11, GUARDED; if (c.wait_for(held, milliseconds(10), [] { return false; })) return false)
TIMED(std_wait_until_fixed, 11,
      GUARDED; if (c.wait_until(held, at + milliseconds(10)) != std::cv_status::timeout) return false)
TIMED(std_wait_steady_fixed, 11,
      GUARDED; if (c.wait_until(held, begun + milliseconds(10)) != std::cv_status::timeout) return false)
TIMED(std_acquire_for_fixed, 25, if (full.try_acquire_for(milliseconds(10))) return false)
TIMED(std_acquire_until_fixed, 25, if (full.try_acquire_until(begun + milliseconds(10))) return false)
TIMED(std_sleep_for_fixed, 11, std::this_thread::sleep_for(milliseconds(10)))
TIMED(std_sleep_until_fixed, 11, std::this_thread::sleep_until(begun + milliseconds(10)))
#define TIMED_LOCK(name, mutex, wait)                                                           \
    CPP_PROGRAM(name, 2, mutex m; std::atomic<long> held{0};,                                   \
                if (t == 0) { m.lock(); held = 1; while (held != 2) std::this_thread::yield(); m.unlock(); } \
                else { while (held != 1) std::this_thread::yield();                             \
                       auto begun = Steady::now(); bool got = wait; auto spent = Steady::now() - begun; \
                       held = 2; if (got || spent < milliseconds(10)) return false; })
TIMED_LOCK(std_try_lock_for_fixed, std::timed_mutex, m.try_lock_for(milliseconds(10)))
TIMED_LOCK(std_try_lock_until_fixed, std::timed_mutex, m.try_lock_until(System::now() + milliseconds(10)))
TIMED_LOCK(std_try_lock_shared_for_fixed, std::shared_timed_mutex, m.try_lock_shared_for(milliseconds(10)))
CPP_PROGRAM(std_poll_fixed, 2, std::atomic<long> touched{0};,
            touched++; auto end = Steady::now() + milliseconds(10);
            while (Steady::now() < end) if (t) std::this_thread::yield();)

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
CPP_PROGRAM(std_notify_forgotten, 2, std::atomic<int> flag{0};, if (t == 0) flag = 1; else flag.wait(0);)
CPP_PROGRAM(std_notify_fixed, 2, std::atomic<int> flag{0};,
            if (t == 0) { flag = 1; flag.notify_one(); } else flag.wait(0);)

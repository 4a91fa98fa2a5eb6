"""Programs of two threads with 100 accesses each that use one mechanism of the engine, or none:
SUBJECTS[name], THREADS[name].
"""

include "../../tests/engine/programs/subjects_cpp.pxi"

cdef extern from *:
    """
    #include <atomic>
    #include <cerrno>
    #include <cfenv>
    #include <chrono>
    #include <mutex>
    #include <thread>

    #include "tests/engine/programs/kit.hpp"

    struct Turns {
        std::atomic<long> x[4]{};
        std::mutex lock;
        template <typename Each> bool run(int t, Each each) {
            for (int i = 0; i < 50; i++) {
                x[i % 4].store(t, std::memory_order_release);
                (void)x[(i + 1) % 4].load(std::memory_order_acquire);
                each();
            }
            return true;
        }
    };
    static thread_local long own;

    CPP_PROGRAM(nothing, 2, Turns turns;, return turns.run(t, [] {});)
    CPP_PROGRAM(thread_local_variable, 2, Turns turns;, return turns.run(t, [] { own++; });)
    CPP_PROGRAM(error_number, 2, Turns turns;, errno = t + 1; turns.run(t, [] {}); errno = 0;)
    CPP_PROGRAM(floats, 2, Turns turns;,
                std::fesetround(FE_UPWARD); turns.run(t, [] {}); std::fesetround(FE_TONEAREST);)
    CPP_PROGRAM(exception_ended, 2, Turns turns;,
                try { throw t; } catch (int) {} return turns.run(t, [] {});)
    CPP_PROGRAM(exception_in_flight, 2, Turns turns;,
                try { throw t; } catch (int) { turns.run(t, [] {}); })
    CPP_PROGRAM(lock, 2, Turns turns;,
                return turns.run(t, [this] { std::lock_guard held(turns.lock); });)
    CPP_PROGRAM(clock_read, 2, Turns turns;,
                return turns.run(t, [] { (void)std::chrono::steady_clock::now(); });)
    CPP_PROGRAM(sleeping, 2, Turns turns;,
                return turns.run(t, [] { std::this_thread::sleep_for(std::chrono::nanoseconds(1)); });)
    """

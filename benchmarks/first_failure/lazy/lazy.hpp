#pragma once
#include <atomic>
#include <mutex>

template <typename T> class Lazy {
    std::atomic<bool> ready{false};
    std::mutex mutex;
    T value{};

public:
    template <typename F> const T &get(F make) {
        if (!ready.load(std::memory_order_relaxed)) { // too weak: should be acquire
            std::lock_guard<std::mutex> lock(mutex);
            if (!ready.load(std::memory_order_relaxed)) {
                value = make();
                ready.store(true, std::memory_order_release);
            }
        }
        return value;
    }
};

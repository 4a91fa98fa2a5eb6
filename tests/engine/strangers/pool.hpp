// A pool of threads with futures, and a bounded buffer, of what C++20 has. They know nothing of
// pulsar_ml.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <vector>

template <bool WakesAll> class Pool {
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::deque<std::function<void()>> work_;
    std::vector<std::jthread> threads_;

    void run(std::stop_token stop) {
        for (;;) {
            std::function<void()> next;
            {
                std::unique_lock<std::mutex> held(mutex_);
                if (!wake_.wait(held, stop, [&] { return !work_.empty(); }))
                    return;
                next = std::move(work_.front());
                work_.pop_front();
            }
            next();
        }
    }

public:
    explicit Pool(int threads) {
        for (int i = 0; i < threads; i++)
            threads_.emplace_back([this](std::stop_token stop) { run(stop); });
    }
    ~Pool() { for (std::jthread &t : threads_) t.request_stop(); threads_.clear(); }
    template <typename F> auto submit(F f) {
        auto task = std::make_shared<std::packaged_task<decltype(f())()>>(std::move(f));
        auto result = task->get_future();
        { std::lock_guard<std::mutex> held(mutex_); work_.push_back([task] { (*task)(); }); }
        if (WakesAll)
            wake_.notify_one();
        return result;
    }
};

// Semaphore counts what is free and what is full; a bare one leaves the mutex out.
template <typename T, int Capacity, typename Semaphore, bool Locks> class BoundedBuffer {
    Semaphore free_{Capacity}, full_{0};
    std::mutex mutex_;
    T slots_[Capacity];
    int first_ = 0, n_ = 0;

public:
    void put(T value) {
        free_.acquire();
        std::unique_lock<std::mutex> held(mutex_, std::defer_lock);
        if (Locks)
            held.lock();
        slots_[(first_ + n_++) % Capacity] = value;
        if (Locks)
            held.unlock();
        full_.release();
    }
    T get() {
        full_.acquire();
        std::unique_lock<std::mutex> held(mutex_, std::defer_lock);
        if (Locks)
            held.lock();
        T value = slots_[first_];
        first_ = (first_ + 1) % Capacity;
        n_--;
        if (Locks)
            held.unlock();
        free_.release();
        return value;
    }
};

// The semaphore of a textbook.
class WaitingSemaphore {
    std::mutex mutex_;
    std::condition_variable positive_;
    long count_;

public:
    explicit WaitingSemaphore(long count) : count_(count) {}
    void acquire() {
        std::unique_lock<std::mutex> held(mutex_);
        positive_.wait(held, [&] { return count_ > 0; });
        count_--;
    }
    void release() {
        std::lock_guard<std::mutex> held(mutex_);
        count_++;
        positive_.notify_one();
    }
};

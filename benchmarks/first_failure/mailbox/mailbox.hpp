#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>

template <typename T> class Mailbox {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<T> letter;

    bool full() {
        std::lock_guard<std::mutex> lock(mutex);
        return letter.has_value();
    }

public:
    void put(T value) {
        std::lock_guard<std::mutex> lock(mutex);
        letter = value;
        arrived.notify_one();
    }
    T take() {
        bool wait = !full(); // released here: the letter may arrive before the wait
        std::unique_lock<std::mutex> lock(mutex);
        if (wait)
            arrived.wait(lock);
        T value = *letter;
        letter.reset();
        return value;
    }
};

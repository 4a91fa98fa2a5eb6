// A ring for one producer and one consumer. ORDER is that of the store which publishes a value.
#pragma once
#include <atomic>
#include <optional>

#ifndef ORDER
#define ORDER std::memory_order_release
#endif

template <typename T, unsigned N> class Ring {
    T slots[N];
    std::atomic<unsigned> head{0}, tail{0};

public:
    bool push(T value)
    {
        unsigned at = tail.load(std::memory_order_relaxed);
        if (at - head.load(std::memory_order_acquire) == N)
            return false;
        slots[at % N] = value;
        tail.store(at + 1, ORDER);
        return true;
    }
    bool pop(T &value)
    {
        unsigned at = head.load(std::memory_order_relaxed);
        if (at == tail.load(std::memory_order_acquire))
            return false;
        value = slots[at % N];
        head.store(at + 1, std::memory_order_release);
        return true;
    }
    std::optional<T> poll()
    {
        T value{};
        return pop(value) ? std::optional<T>(value) : std::nullopt;
    }
    int take()
    {
        T value{};
        return pop(value) ? value : -1;
    }
};

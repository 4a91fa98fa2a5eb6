// A bounded ring for one producer and one consumer. It knows nothing of pulsar_ml.
#pragma once
#include <atomic>
#include <cstdint>

template <typename T, uint32_t Capacity, std::memory_order Publish>
class Ring {
public:
    bool push(const T &value) {
        uint32_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_.load(std::memory_order_acquire) == Capacity)
            return false;
        slots_[tail % Capacity].store(value, std::memory_order_relaxed);
        tail_.store(tail + 1, Publish);
        return true;
    }

    bool pop(T &value) {
        uint32_t head = head_.load(std::memory_order_relaxed);
        if (head == tail_.load(std::memory_order_acquire))
            return false;
        value = slots_[head % Capacity].load(std::memory_order_relaxed);
        head_.store(head + 1, std::memory_order_release);
        return true;
    }

private:
    std::atomic<T> slots_[Capacity] = {};
    std::atomic<uint32_t> head_{0};
    std::atomic<uint32_t> tail_{0};
};

#pragma once
#include <atomic>

// A queue of one producer and one consumer, with room for eight elements.
class Queue {
    int elements[8] = {};
    std::atomic<unsigned> head{0}, tail{0};

  public:
    bool push(int element) {
        unsigned at = tail.load(std::memory_order_relaxed);
        if (at - head.load(std::memory_order_acquire) == 8) return false;
        elements[at % 8] = element;
        tail.store(at + 1, std::memory_order_relaxed);
        return true;
    }

    bool pop(int &element) {
        unsigned at = head.load(std::memory_order_relaxed);
        if (at == tail.load(std::memory_order_acquire)) return false;
        element = elements[at % 8];
        head.store(at + 1, std::memory_order_release);
        return true;
    }
};

// A mailbox of one letter, in C++: the flag publishes the letter, or seems to.
#pragma once
#include <atomic>

class Mailbox {
    const bool publishes;
    std::atomic<int> letter{0};
    std::atomic<bool> full{false};

  public:
    explicit Mailbox(bool publishes) : publishes(publishes) {}
    void put(int value)
    {
        letter.store(value, std::memory_order_relaxed);
        if (publishes)
            full.store(true, std::memory_order_release);
        else
            full.store(true, std::memory_order_relaxed);
    }
    // -1: it is empty
    int take()
    {
        bool found = publishes ? full.load(std::memory_order_acquire) : full.load(std::memory_order_relaxed);
        return found ? letter.load(std::memory_order_relaxed) : -1;
    }
};

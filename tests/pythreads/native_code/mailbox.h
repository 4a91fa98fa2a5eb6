// A mailbox of one letter, in C++: the flag publishes the letter, or seems to.
#pragma once
#include <atomic>

template <std::memory_order PUBLISH, std::memory_order READ>
class Mailbox {
    std::atomic<int> letter{0};
    std::atomic<bool> full{false};

  public:
    void put(int value)
    {
        letter.store(value, std::memory_order_relaxed);
        full.store(true, PUBLISH);
    }
    // -1: it is empty
    int take() { return full.load(READ) ? letter.load(std::memory_order_relaxed) : -1; }
};

using RelaxedMailbox = Mailbox<std::memory_order_relaxed, std::memory_order_relaxed>;
using OrderedMailbox = Mailbox<std::memory_order_release, std::memory_order_acquire>;

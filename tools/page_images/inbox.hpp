#pragma once
#include <atomic>

// A queue in an array: get() claims its place in two steps.
class Inbox {
    std::atomic<long> places[16] = {};
    std::atomic<int> first{0}, last{0};

  public:
    void put(long value) {
        int place = last.load();
        places[place % 16].store(value);
        last.store(place + 1);
    }

    long get() {
        int place = first.load();
        if (place == last.load()) return 0;
        long value = places[place % 16].load();
        first.store(place + 1);
        return value;
    }
};

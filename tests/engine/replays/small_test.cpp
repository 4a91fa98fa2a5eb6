#include <atomic>
#include <cassert>
#include <thread>

std::atomic<int> price, version;

void test_price() {
    std::thread other([] {
        price.store(42, std::memory_order_relaxed);
        version.store(1, std::memory_order_relaxed);
    });
    if (version.load(std::memory_order_acquire) == 1)
        assert(price.load(std::memory_order_relaxed) == 42);
    other.join();
}

int hits;

void test_hits() {
    std::thread other([] { hits++; });
    hits++;
    other.join();
}

std::atomic<int> turns;

void test_turns() {
    auto turn = [] {
        for (int i = 0; i < 4; i++)
            turns.fetch_add(2, std::memory_order_relaxed);
        int seen = turns.load(std::memory_order_relaxed);
        turns.store(seen + 1, std::memory_order_relaxed);
    };
    std::thread other(turn);
    turn();
    other.join();
    assert(turns.load(std::memory_order_relaxed) == 18);
}

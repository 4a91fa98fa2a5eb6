#include <atomic>
#include <cassert>
#include <thread>

std::atomic<int> wants[2];
std::atomic<int> inside;

// Both threads raise a flag and look at the other one's: one of them should see it.
bool enter(int me) {
    wants[me].store(1, std::memory_order_release);
    return wants[1 - me].load(std::memory_order_acquire) == 0;
}

void work(int me) {
    if (!enter(me)) return;
    assert(inside.fetch_add(1) == 0);
    inside.fetch_sub(1);
}

void test_flags() {
    std::thread other([] { work(1); });
    work(0);
    other.join();
}

// Event count: lets threads sleep until a condition without a lock holds. C++20 atomic waits.
#include <atomic>
#include <cassert>
#include <cstdint>
#include <thread>

class event_count {
    std::atomic<std::uint32_t> epoch{0};

  public:
    using key = std::uint32_t;

    key prepare_wait() { return epoch.load(std::memory_order_seq_cst); }
    void wait(key seen) { epoch.wait(seen, std::memory_order_acquire); }
    void notify_all()
    {
        epoch.fetch_add(1, std::memory_order_seq_cst);
        epoch.notify_all();
    }
};

struct flag_and_events {
    std::atomic<int> items{0};
    event_count events;
};

// Takes the key before it looks, so that a later notification ends the wait.
static void consume(flag_and_events &shared)
{
    for (;;) {
        auto key = shared.events.prepare_wait();
        if (shared.items.load() > 0)
            break;
        shared.events.wait(key);
    }
    shared.items.fetch_sub(1);
}

static void consume_buggy(flag_and_events &shared)
{
    while (shared.items.load() == 0) {
        auto key = shared.events.prepare_wait(); // too late: the notification may have come before
        shared.events.wait(key);
    }
    shared.items.fetch_sub(1);
}

static void one_item(void (*consume)(flag_and_events &))
{
    flag_and_events shared;
    std::jthread consumer([&] { consume(shared); });
    shared.items.fetch_add(1);
    shared.events.notify_all();
    consumer.join();
    assert(shared.items.load() == 0);
}

void test_event_count() { one_item(consume); }
void test_event_count_buggy() { one_item(consume_buggy); }

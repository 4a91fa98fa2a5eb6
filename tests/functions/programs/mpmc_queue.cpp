// Bounded queue of many producers and many consumers, after Dmitry Vyukov.
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace mpmc {

struct correct {
    static constexpr std::memory_order publish = std::memory_order_release;
};
struct broken {
    static constexpr std::memory_order publish = std::memory_order_relaxed;
};

template <typename T, std::size_t Size, typename Policy = correct> class queue {
    static_assert((Size & (Size - 1)) == 0, "Size is a power of two");

  public:
    queue()
    {
        for (std::size_t i = 0; i < Size; ++i)
            cells[i].sequence.store(i, std::memory_order_relaxed);
    }

    bool push(const T &value)
    {
        std::size_t position = tail.load(std::memory_order_relaxed);
        for (;;) {
            cell &slot = cells[position % Size];
            auto sequence = slot.sequence.load(std::memory_order_acquire);
            auto difference = static_cast<std::intptr_t>(sequence - position);
            if (difference == 0) {
                if (tail.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
                    slot.value = value;
                    slot.sequence.store(position + 1, Policy::publish);
                    return true;
                }
            } else if (difference < 0) {
                return false;
            } else {
                position = tail.load(std::memory_order_relaxed);
            }
        }
    }

    bool pop(T &value)
    {
        std::size_t position = head.load(std::memory_order_relaxed);
        for (;;) {
            cell &slot = cells[position % Size];
            auto sequence = slot.sequence.load(std::memory_order_acquire);
            auto difference = static_cast<std::intptr_t>(sequence - (position + 1));
            if (difference == 0) {
                if (head.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
                    value = slot.value;
                    slot.sequence.store(position + Size, Policy::publish);
                    return true;
                }
            } else if (difference < 0) {
                return false;
            } else {
                position = head.load(std::memory_order_relaxed);
            }
        }
    }

  private:
    struct alignas(64) cell {
        std::atomic<std::size_t> sequence;
        T value;
    };
    cell cells[Size];
    alignas(64) std::atomic<std::size_t> tail{0};
    alignas(64) std::atomic<std::size_t> head{0};
};

} // namespace mpmc

template <typename Queue> static void exchange()
{
    Queue queue;
    std::atomic<int> sum{0};
    std::vector<std::thread> threads;
    for (int id = 1; id <= 2; ++id)
        threads.emplace_back([&queue, id] {
            while (!queue.push(id))
                std::this_thread::yield();
        });
    threads.emplace_back([&] {
        int value = 0;
        while (!queue.pop(value))
            std::this_thread::yield();
        sum += value;
    });
    int value = 0;
    while (!queue.pop(value))
        std::this_thread::yield();
    sum += value;
    for (auto &thread : threads)
        thread.join();
    assert(sum == 3);
}

void test_queue() { exchange<mpmc::queue<int, 2>>(); }

void test_queue_buggy() { exchange<mpmc::queue<int, 2, mpmc::broken>>(); }

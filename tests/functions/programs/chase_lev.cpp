// Bounded work-stealing deque. Orders by Le, Pop, Cohen and Zappa Nardelli (PPoPP 2013).
#include <atomic>
#include <cassert>
#include <thread>

enum class fence { present, missing };

template <typename T, int Capacity, fence Fence> class deque {
  public:
    bool push(T value)
    {
        long b = bottom_.load(std::memory_order_relaxed);
        long t = top_.load(std::memory_order_acquire);
        if (b - t >= Capacity)
            return false;
        items_[b % Capacity].store(value, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        bottom_.store(b + 1, std::memory_order_relaxed);
        return true;
    }

    bool take(T &value)
    {
        long b = bottom_.load(std::memory_order_relaxed) - 1;
        bottom_.store(b, std::memory_order_relaxed);
        if (Fence == fence::present)
            std::atomic_thread_fence(std::memory_order_seq_cst);
        long t = top_.load(std::memory_order_relaxed);
        if (t > b) {
            bottom_.store(b + 1, std::memory_order_relaxed);
            return false;
        }
        value = items_[b % Capacity].load(std::memory_order_relaxed);
        if (t < b)
            return true;
        bool won = top_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst,
                                                std::memory_order_relaxed);
        bottom_.store(b + 1, std::memory_order_relaxed);
        return won;
    }

    bool steal(T &value)
    {
        long t = top_.load(std::memory_order_acquire);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        long b = bottom_.load(std::memory_order_acquire);
        if (t >= b)
            return false;
        value = items_[t % Capacity].load(std::memory_order_relaxed);
        return top_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst,
                                            std::memory_order_relaxed);
    }

  private:
    std::atomic<long> top_{0}, bottom_{0};
    std::atomic<T> items_[Capacity];
};

template <fence Fence> void every_task_is_run_once()
{
    deque<int, 8, Fence> tasks;
    std::atomic<int> runs[3] = {};
    for (int task = 0; task < 3; ++task)
        tasks.push(task);
    std::thread thief([&] {
        int task;
        for (int tries = 0; tries < 2; ++tries)
            if (tasks.steal(task))
                runs[task].fetch_add(1, std::memory_order_relaxed);
    });
    int task;
    while (tasks.take(task))
        runs[task].fetch_add(1, std::memory_order_relaxed);
    thief.join();
    for (auto &count : runs)
        assert(count.load() == 1);
}

void test_work_stealing() { every_task_is_run_once<fence::present>(); }
void test_work_stealing_buggy() { every_task_is_run_once<fence::missing>(); }

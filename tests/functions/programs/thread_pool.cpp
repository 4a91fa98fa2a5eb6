// A thread pool whose destructor runs what is queued, then ends the workers.
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

class pool {
  public:
    pool(int workers, bool careful) : careful(careful)
    {
        for (int i = 0; i < workers; ++i)
            threads.emplace_back([this] { work(); });
    }

    ~pool()
    {
        if (careful) {
            std::lock_guard lock(mutex);
            stopping = true;
        } else {
            stopping_unlocked = true; // between a worker's check and its wait, nobody hears it
        }
        wake.notify_all();
        for (auto &thread : threads)
            thread.join();
    }

    template <typename F> auto submit(F function) -> std::future<decltype(function())>
    {
        auto task = std::make_shared<std::packaged_task<decltype(function())()>>(std::move(function));
        auto result = task->get_future();
        {
            std::lock_guard lock(mutex);
            tasks.emplace_back([task] { (*task)(); });
        }
        wake.notify_one();
        return result;
    }

  private:
    void work()
    {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock lock(mutex);
                wake.wait(lock, [this] { return stopping || stopping_unlocked || !tasks.empty(); });
                if (tasks.empty())
                    return;
                task = std::move(tasks.front());
                tasks.pop_front();
            }
            task();
        }
    }

    const bool careful;
    bool stopping = false;
    std::atomic<bool> stopping_unlocked = false;
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void()>> tasks;
    std::vector<std::thread> threads;
};

static void run_and_stop(bool careful)
{
    std::future<int> answer;
    {
        pool workers(2, careful);
        answer = workers.submit([] { return 6 * 7; });
    }
    assert(answer.get() == 42);
}

void test_shutdown() { run_and_stop(true); }
void test_shutdown_buggy() { run_and_stop(false); }

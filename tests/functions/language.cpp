// Uses of the language and its library that tests of C++ code have.
#include <atomic>
#include <barrier>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <iostream>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace app {
std::vector<int> log_lines{1, 2, 3};
std::map<std::string, int> table{{"a", 1}};
std::string name = "a name that is too long for the small buffer of a string";
std::mutex mutex;
struct counted {
    static inline int alive = 0;
    counted() { ++alive; }
    ~counted() { --alive; }
} one;
int *never_freed = new int(7);
thread_local int calls = 0;
} // namespace app

static void test_global_objects()
{
    assert(app::log_lines.size() == 3 && app::table.size() == 1 && app::counted::alive == 1);
    assert(*app::never_freed == 7);
    std::thread other([] {
        std::lock_guard lock(app::mutex);
        app::log_lines.push_back(4);
        app::table["b"] = 2;
    });
    {
        std::lock_guard lock(app::mutex);
        app::log_lines.push_back(5);
        app::name += "!";
    }
    other.join();
    assert(app::log_lines.size() == 5);
    *app::never_freed = 8;
}

static void test_leak_buggy()
{
    std::thread other([] { std::lock_guard lock(app::mutex); app::log_lines.push_back(1); });
    { std::lock_guard lock(app::mutex); app::log_lines.push_back(1); }
    other.join();
    static std::atomic<int *> pointer; /* Clang leaves out a block that only a local one knows */
    pointer = new int(3);
    pointer = nullptr;
}

void test_thread_local()
{
    std::atomic<int> sum = 0;
    auto body = [&] { sum += ++app::calls; };
    std::thread a(body), b(body);
    body();
    a.join();
    b.join();
    assert(sum == 3);
}

auto test_trailing_return() -> void
{
    std::atomic<int> x = 0;
    std::jthread a([&] { x = 1; });
    (void)x.load();
}

void test_exception_buggy()
{
    std::atomic<int> x = 0;
    std::jthread a([&] { x = 1; });
    if (x == 1) throw std::runtime_error("x is one");
}

void test_exception_in_thread_buggy()
{
    std::atomic<int> x = 0;
    std::jthread a([&] { if (x == 0) throw std::out_of_range("nobody catches this"); });
    x = 1;
}

void test_caught()
{
    std::atomic<int> x = 0;
    std::jthread a([&] { try { x = std::stoi("no number"); } catch (const std::invalid_argument &) { x = 1; } });
    try { app::table.at("zzz"); } catch (const std::out_of_range &) { x = 2; }
}

void test_cout()
{
    std::atomic<int> x = 0;
    std::jthread a([&] { x = 1; std::cout << "thread " << x << std::endl; });
    std::cout << "main " << x << '\n';
    printf("printf %d\n", x.load());
}

void test_random_and_clocks()
{
    std::atomic<int> x = 0;
    auto start = std::chrono::steady_clock::now();
    std::jthread a([&] { std::this_thread::sleep_for(10ms); x = rand() % 10; });
    std::mt19937 engine(42);
    x += static_cast<int>(engine() % 10);
    std::this_thread::sleep_for(20ms);
    assert(std::chrono::steady_clock::now() >= start);
    assert(std::chrono::system_clock::now().time_since_epoch().count() != 0);
}

void test_random_device()
{
    std::atomic<int> x = 0;
    std::random_device device;
    std::mt19937 engine(device());
    std::jthread a([&] { x = static_cast<int>(engine() % 3); if (x == 1) ++x; });
    (void)x.load();
}

void test_cpp20_sync()
{
    std::counting_semaphore<3> slots(1);
    std::binary_semaphore done(0);
    std::latch latch(2);
    std::barrier barrier(2);
    std::shared_mutex shared;
    std::once_flag once;
    int value = 0, times = 0;
    std::jthread a([&](std::stop_token stop) {
        slots.acquire();
        { std::unique_lock lock(shared); value = 1; }
        slots.release();
        std::call_once(once, [&] { ++times; });
        latch.count_down();
        barrier.arrive_and_wait();
        done.release();
        while (!stop.stop_requested()) std::this_thread::yield();
    });
    slots.acquire();
    { std::shared_lock lock(shared); assert(value <= 1); }
    slots.release();
    std::call_once(once, [&] { ++times; });
    latch.arrive_and_wait();
    barrier.arrive_and_wait();
    done.acquire();
    assert(times == 1 && value == 1);
}

void test_futures()
{
    auto later = std::async(std::launch::async, [] { return 5; });
    std::promise<int> promise;
    std::thread a([&] { promise.set_value(6); });
    assert(promise.get_future().get() + later.get() == 11);
    a.join();
}

void test_shared_ptr()
{
    auto p = std::make_shared<int>(5);
    std::shared_ptr<int> cell = p;
    std::thread a([q = p] { assert(*q == 5); });
    std::thread b([&] { std::atomic_store(&cell, std::make_shared<int>(6)); });
    auto seen = std::atomic_load(&cell);
    assert(*seen == 5 || *seen == 6);
    p.reset();
    a.join();
    b.join();
}

void test_static_local()
{
    auto get = []() -> std::vector<int> & { static std::vector<int> v(3); return v; };
    std::thread a([&] { assert(get().size() == 3); });
    assert(get().size() == 3);
    a.join();
    get().push_back(1);
    assert(get().size() == 4);
}

void test_wait_for()
{
    std::mutex m;
    std::condition_variable cv;
    bool ready = false;
    std::thread a([&] { { std::lock_guard lock(m); ready = true; } cv.notify_one(); });
    std::unique_lock lock(m);
    bool in_time = cv.wait_for(lock, 5s, [&] { return ready; });
    assert(in_time);
    lock.unlock();
    a.join();
}

#ifdef NOT_DEFINED
void test_conditional() { test_futures(); }
#endif

void test_random_matters()
{
    std::atomic<int> x = 0;
    std::jthread a([&] { if (rand() % 2) x = 1; });
    if (rand() % 3) x.load();
}
namespace app {
inline namespace v1 {
void test_in_namespace() { test_futures(); }
struct fixture {
    void test_method() {}
};
} // namespace v1
} // namespace app

int main() { test_cout(); }

// A configuration that is read when it is first needed: double-checked locking.
#include <atomic>
#include <cassert>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

struct config {
    std::map<std::string, int> values{{"threads", 8}, {"retries", 3}};
    int get(const std::string &key) const { return values.at(key); }
};

namespace {

std::mutex mutex;
std::atomic<config *> instance{nullptr};
config *plain_instance = nullptr;
int built = 0;

config *get()
{
    config *found = instance.load(std::memory_order_acquire);
    if (!found) {
        std::lock_guard<std::mutex> lock(mutex);
        found = instance.load(std::memory_order_relaxed);
        if (!found) {
            ++built;
            found = new config;
            instance.store(found, std::memory_order_release);
        }
    }
    return found;
}

config *get_buggy()
{
    if (!plain_instance) { // not atomic: the pointer may be seen before what it points to
        std::lock_guard<std::mutex> lock(mutex);
        if (!plain_instance) {
            ++built;
            plain_instance = new config;
        }
    }
    return plain_instance;
}

config &get_static()
{
    static config only;
    return only;
}

} // namespace

static void test_lazy_init()
{
    std::thread other([] { assert(get()->get("retries") == 3); });
    assert(get()->get("threads") == 8);
    other.join();
    assert(built == 1);
}

static void test_lazy_init_buggy()
{
    std::thread other([] { assert(get_buggy()->get("retries") == 3); });
    assert(get_buggy()->get("threads") == 8);
    other.join();
    assert(built == 1);
}

static void test_static_of_a_function()
{
    std::thread other([] { assert(get_static().get("retries") == 3); });
    assert(get_static().get("threads") == 8);
    other.join();
}

int main()
{
    test_lazy_init();
    test_lazy_init_buggy();
    test_static_of_a_function();
}

// Copy-on-write vector: readers take a snapshot, writers replace the whole.
#include <cassert>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

class cow_vector {
    using items = std::vector<int>;
    std::shared_ptr<const items> current = std::make_shared<items>();
    mutable std::mutex mutex;
    std::mutex writers;

  public:
    std::shared_ptr<const items> snapshot() const
    {
        std::lock_guard<std::mutex> lock(mutex);
        return current;
    }

    void push_back(int value)
    {
        std::lock_guard<std::mutex> one_writer(writers);
        auto copy = std::make_shared<items>(*snapshot());
        copy->push_back(value);
        std::lock_guard<std::mutex> lock(mutex);
        current = std::move(copy);
    }

    // Another writer's value, added since the snapshot, is lost.
    void push_back_buggy(int value)
    {
        auto copy = std::make_shared<items>(*snapshot());
        copy->push_back(value);
        std::lock_guard<std::mutex> lock(mutex);
        current = std::move(copy);
    }
};

static void two_writers(void (cow_vector::*push_back)(int))
{
    cow_vector numbers;
    std::thread one([&] { (numbers.*push_back)(1); });
    std::thread two([&] { (numbers.*push_back)(2); });
    auto seen = numbers.snapshot();
    assert(seen->size() <= 2);
    one.join();
    two.join();
    assert(numbers.snapshot()->size() == 2);
}

void test_cow_vector() { two_writers(&cow_vector::push_back); }

void test_cow_vector_buggy() { two_writers(&cow_vector::push_back_buggy); }

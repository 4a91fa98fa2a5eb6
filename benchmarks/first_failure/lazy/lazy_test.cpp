#include <cassert>
#include <thread>

#include "lazy.hpp"

void test_both_threads_get_the_value() {
    Lazy<int> answer;
    std::thread other([&] { assert(answer.get([] { return 42; }) == 42); });
    assert(answer.get([] { return 42; }) == 42);
    other.join();
}

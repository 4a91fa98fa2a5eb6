#include <cassert>
#include <thread>

#include "stack.hpp"

void test_two_threads_pop_different_values() {
    Stack<int> stack;
    stack.push(1);
    stack.push(2);
    int a = 0, b = 0;
    std::thread other([&] { stack.pop(a); });
    stack.pop(b);
    other.join();
    assert(a + b == 3);
}

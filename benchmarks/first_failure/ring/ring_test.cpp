#include <cassert>
#include <thread>

#include "ring.hpp"

void test_values_arrive_in_order() {
    Ring<int, 2> ring;
    std::thread producer([&] {
        for (int i = 1; i <= 2; i++)
            while (!ring.push(i))
                std::this_thread::yield();
    });
    for (int i = 1, value; i <= 2; i++) {
        while (!ring.pop(value))
            std::this_thread::yield();
        assert(value == i);
    }
    producer.join();
}

#include "queue.h"

#include <cassert>
#include <thread>

Queue queue;

void test_queue() {
    std::thread producer([] {
        queue.push(1);
        queue.push(2);
    });
    for (int expected = 1, element; expected <= 2;) {
        if (!queue.pop(element)) continue;
        assert(element == expected);
        expected++;
    }
    producer.join();
}

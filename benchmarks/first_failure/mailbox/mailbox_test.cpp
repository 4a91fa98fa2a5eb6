#include <cassert>
#include <thread>

#include "mailbox.hpp"

void test_a_letter_arrives() {
    Mailbox<int> box;
    std::thread sender([&] { box.put(42); });
    assert(box.take() == 42);
    sender.join();
}

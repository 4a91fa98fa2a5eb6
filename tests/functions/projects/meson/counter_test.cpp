#include <atomic>
#include <cassert>
#include <thread>

#include "limit.h"

// The compiler gets -DCOUNTER=..., the folder of limit.h and the standard from the project.
void test_no_increment_is_lost()
{
    COUNTER counter{0};
    std::jthread other([&] { counter++; });
    counter++;
    other.join();
    assert(counter == LIMIT);
}

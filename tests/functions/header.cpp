// Functions that use the optional header; each name says what test_header.py expects.
#include <atomic>
#include <cassert>
#include <memory>
#include <string>
#include <thread>

#include <pulsar_ml/check.h>

enum class Colour { red, green };

struct Ring {
    int slots[4] = {};
    std::atomic<unsigned> head{0};
};

struct Node {
    int value;
    std::atomic<Node *> next{nullptr};
};

template <typename T> struct Stack {
    std::atomic<Node *> top{nullptr};
    T spare{};
    static inline std::atomic<int> made{0};

    void push()
    {
        Node *node = new Node{1};
        node->next = top.load();
        top = node;
        made++;
    }
};

namespace app {
int counts[3][4];
}

void test_threads()
{
    std::atomic<int> sum{0};
    check::threads([&] { sum += 1; }, [&] { sum += 2; }, [&] { sum += 4; });
    assert(sum == 7);
}

// Needs one value of 1,000, which is not the smallest that fails.
void test_choose_buggy()
{
    std::atomic<int> x{0};
    int wanted = check::choose(1000);
    check::threads([&] { x = wanted; }, [&] { x += 1; });
    assert(x < 200);
}

void test_choose_twice()
{
    std::atomic<int> seen{0};
    int first = check::choose(3), second = check::choose(2);
    check::threads([&] { seen = first; }, [&] { seen = 4 + second; });
    assert(first < 3 && second < 2 && check::choose(1) == 0);
}

void test_choose_in_threads_buggy()
{
    std::atomic<int> a{0}, b{0};
    check::threads([&] { a = check::choose(4); }, [&] { b = check::choose(4); });
    assert(a + 4 * b != 11); // 3 and 2
}

void test_choose_from_none_buggy()
{
    std::atomic<int> x{0};
    check::threads([&] { x = check::choose(0); }, [&] { x = 1; });
}

void test_assume()
{
    std::atomic<int> x{0};
    int value = check::choose(4);
    check::assume(value % 2 == 0);
    check::threads([&] { x = value; }, [&] { x += 2; });
    assert(x % 2 == 0);
}

void test_assume_behind_threads()
{
    std::atomic<int> x{0};
    bool first = false;
    check::threads([&] { x += 1; }, [&] { first = x == 0; });
    check::assume(first);
    auto kept = std::make_unique<int>(x); // an execution that is discarded leaks nothing
    check::assume(*kept == 1);
}

void test_assume_never_holds()
{
    std::atomic<int> x{0};
    check::threads([&] { x = 1; }, [&] { x += 1; });
    check::assume(x > 7);
}

void test_notes_buggy()
{
    std::atomic<int> x{0};
    check::note("begins");
    check::note("a number", -7);
    check::note("a colour", Colour::green);
    check::note("a half", 0.5);
    check::note("a text", "words");
    check::note("a string", std::string("more words"));
    check::note("true", true);
    check::note("large", ~0ull);
    check::threads([&] { x = 1; }, [&] { check::note("x", x.load()); });
    assert(x == 0);
}

void test_name_buggy()
{
    auto ring = std::make_unique<Ring>();
    check::name(*ring, "the ring");
    check::name(ring->head, "our head");
    check::threads([&] { ring->slots[2] = 1; ring->head = 1; }, [&] { ring->slots[2] = 2; });
}

void test_local_buggy()
{
    Ring ring;
    check::threads([&] { ring.head = 1; ring.slots[1] = 1; }, [&] { ring.slots[1] = 2; });
}

static Stack<int> stack;

void test_global_buggy()
{
    check::threads([] { stack.push(); stack.spare = 1; }, [] { stack.push(); stack.spare = 2; });
}

void test_array_buggy()
{
    check::threads([] { app::counts[1][2] = 1; }, [] { app::counts[1][2] = 2; });
}

void test_heap_buggy()
{
    auto shared = std::make_shared<Node>();
    Node *nodes = new Node[2];
    std::atomic<Node *> at{nullptr};
    check::threads([&] { shared->next = nullptr; nodes[1].next = nullptr; at = nodes; shared->value = 1; },
                   [&] { shared->value = 2; });
}

int *seen; // which keeps the compiler from leaving an allocation out

// No name: the memory that two executions' objects had in turn.
void test_reused_buggy()
{
    seen = new int(1);
    delete seen;
    int *now = new int(2);
    check::threads([&] { *now = 3; }, [&] { *now = 4; });
    delete now;
}

void test_atomic_shared_pointer()
{
    std::atomic<std::shared_ptr<int>> at{std::make_shared<int>(1)};
    check::threads([&] { at.store(std::make_shared<int>(2)); },
                   [&] { auto seen = at.load(); assert(*seen == 1 || *seen == 2); });
    assert(*at.load() == 2);
}

void test_atomic_shared_pointer_buggy()
{
    std::atomic<std::shared_ptr<int>> at{std::make_shared<int>(1)};
    check::threads([&] { *at.load() += 1; }, [&] { *at.load() += 1; });
}

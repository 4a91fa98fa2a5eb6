// The queue of Michael and Scott (PODC 1996) without reclamation: nodes come from an arena.
#include <atomic>
#include <barrier>
#include <cassert>
#include <latch>
#include <memory>
#include <thread>

struct node {
    int value = 0;
    std::atomic<node *> next{nullptr};
};

class arena {
    std::unique_ptr<node[]> nodes{new node[8]};
    std::atomic<int> used{0};

  public:
    node *make(int value)
    {
        node *n = &nodes[used.fetch_add(1, std::memory_order_relaxed)];
        n->value = value;
        return n;
    }
};

class queue {
    arena nodes;
    std::atomic<node *> head, tail;

  public:
    queue()
    {
        node *dummy = nodes.make(0);
        head.store(dummy, std::memory_order_relaxed);
        tail.store(dummy, std::memory_order_relaxed);
    }

    void enqueue(int value)
    {
        node *fresh = nodes.make(value);
        for (;;) {
            node *last = tail.load(std::memory_order_acquire);
            node *next = last->next.load(std::memory_order_acquire);
            if (next) {
                tail.compare_exchange_strong(last, next, std::memory_order_acq_rel);
                continue;
            }
            if (last->next.compare_exchange_strong(next, fresh, std::memory_order_release)) {
                tail.compare_exchange_strong(last, fresh, std::memory_order_release);
                return;
            }
        }
    }

    // Links by a store: of two that come at once, one is lost.
    void enqueue_buggy(int value)
    {
        node *fresh = nodes.make(value);
        for (;;) {
            node *last = tail.load(std::memory_order_acquire);
            if (last->next.load(std::memory_order_acquire) == nullptr) {
                last->next.store(fresh, std::memory_order_release);
                tail.compare_exchange_strong(last, fresh, std::memory_order_release);
                return;
            }
        }
    }

    bool dequeue(int &value)
    {
        for (;;) {
            node *first = head.load(std::memory_order_acquire);
            node *next = first->next.load(std::memory_order_acquire);
            if (!next)
                return false;
            if (head.compare_exchange_strong(first, next, std::memory_order_acq_rel)) {
                value = next->value;
                return true;
            }
        }
    }
};

static void both_values_arrive(void (queue::*enqueue)(int))
{
    queue numbers;
    std::latch done{2};
    std::barrier start{2};
    auto put = [&](int value) {
        start.arrive_and_wait();
        (numbers.*enqueue)(value);
        done.count_down();
    };
    std::jthread one(put, 1), two(put, 2);
    done.wait();
    int a = 0, b = 0;
    assert(numbers.dequeue(a) && numbers.dequeue(b));
    assert(a + b == 3);
}

void test_michael_scott() { both_values_arrive(&queue::enqueue); }
void test_michael_scott_buggy() { both_values_arrive(&queue::enqueue_buggy); }

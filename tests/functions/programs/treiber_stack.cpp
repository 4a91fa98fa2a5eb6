// Treiber's stack with hazard pointers (Michael, TPDS 2004).
#include <array>
#include <atomic>
#include <cassert>
#include <optional>
#include <thread>
#include <vector>

constexpr int max_threads = 4;
std::array<std::atomic<void *>, max_threads> hazards{};

template <bool CheckAgain> class stack {
    struct node {
        int value;
        node *next;
    };
    std::atomic<node *> top{nullptr};

    struct retired_list {
        std::vector<node *> nodes;
        void add(node *n)
        {
            nodes.push_back(n);
            scan();
        }
        void scan()
        {
            std::vector<node *> kept;
            for (node *n : nodes) {
                bool used = false;
                for (auto &hazard : hazards)
                    used = used || hazard.load() == n;
                if (used)
                    kept.push_back(n);
                else
                    delete n;
            }
            nodes = std::move(kept);
        }
        ~retired_list()
        {
            while (!nodes.empty()) {
                scan();
                std::this_thread::yield();
            }
        }
    };
    static thread_local retired_list retired;

  public:
    ~stack()
    {
        for (node *n = top.load(); n;) {
            node *next = n->next;
            delete n;
            n = next;
        }
    }

    void push(int value)
    {
        node *n = new node{value, top.load()};
        while (!top.compare_exchange_weak(n->next, n))
            ;
    }

    std::optional<int> pop(int me)
    {
        node *n = top.load();
        for (;;) {
            if (!n) {
                hazards[me].store(nullptr);
                return std::nullopt;
            }
            hazards[me].store(n);
            if constexpr (CheckAgain) {
                node *again = top.load();
                if (again != n) { // it may have been retired before the hazard was visible
                    n = again;
                    continue;
                }
            }
            if (top.compare_exchange_strong(n, n->next))
                break;
        }
        int value = n->value;
        hazards[me].store(nullptr);
        retired.add(n);
        return value;
    }
};

template <bool CheckAgain> thread_local typename stack<CheckAgain>::retired_list stack<CheckAgain>::retired;

template <typename Stack> void pop_by_two()
{
    Stack stack;
    stack.push(1);
    stack.push(2);
    std::optional<int> a, b;
    std::thread one([&] { a = stack.pop(1); });
    std::thread two([&] { b = stack.pop(2); });
    one.join();
    two.join();
    assert(a && b && *a + *b == 3);
}

void test_hazard_stack() { pop_by_two<stack<true>>(); }
void test_hazard_stack_buggy() { pop_by_two<stack<false>>(); }

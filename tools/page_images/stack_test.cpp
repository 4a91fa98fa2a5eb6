#include <atomic>
#include <thread>

struct Node {
    int value;
    Node *next;
};

std::atomic<Node *> top;

void push(int value) {
    Node *node = new Node{value, top.load()};
    while (!top.compare_exchange_weak(node->next, node)) {
    }
}

// Another thread may free the node between the load of top and the read of its next.
int pop() {
    Node *node = top.load();
    while (node && !top.compare_exchange_weak(node, node->next)) {
    }
    if (!node) return 0;
    int value = node->value;
    delete node;
    return value;
}

void test_stack() {
    push(1);
    push(2);
    std::thread other(pop);
    pop();
    other.join();
}

#pragma once
#include <atomic>

template <typename T> class Stack {
    struct Node {
        T value;
        Node *next;
    };
    std::atomic<Node *> top{nullptr};

public:
    ~Stack() {
        for (T value; pop(value);)
            ;
    }
    void push(T value) {
        Node *node = new Node{value, top.load(std::memory_order_relaxed)};
        while (!top.compare_exchange_weak(node->next, node, std::memory_order_release,
                                          std::memory_order_relaxed))
            ;
    }
    bool pop(T &value) {
        Node *node = top.load(std::memory_order_acquire);
        while (node && !top.compare_exchange_weak(node, node->next, std::memory_order_acquire,
                                                  std::memory_order_acquire))
            ;
        if (!node)
            return false;
        value = node->value;
        delete node; // too early: another thread may be about to read node->next
        return true;
    }
};

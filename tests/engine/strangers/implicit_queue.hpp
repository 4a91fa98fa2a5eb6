// A queue of many producers and consumers in the style of moodycamel::ConcurrentQueue: each
// producing thread gets a sub-queue of its own at its first call, by a thread_local cache, and
// leaves it to others when it ends. It knows nothing of pulsar_ml.
#pragma once
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

template <typename T, std::memory_order Publish = std::memory_order_release, size_t Capacity = 8>
class ImplicitQueue {
    struct Producer {
        std::atomic<size_t> tail{0}, head{0}, optimistic{0}, overcommit{0};
        std::atomic<bool> inactive{false};
        Producer *next = nullptr;
        T slots[Capacity];
    };
    struct Exit {                 // tells the queues that the thread ends
        std::vector<std::pair<ImplicitQueue *, Producer *>> mine;
        ~Exit() { for (auto &[queue, producer] : mine) producer->inactive.store(true, std::memory_order_release); }
    };
    static Exit &exit() { thread_local Exit instance; return instance; }

    Producer *producer() {
        for (auto &[queue, producer] : exit().mine)
            if (queue == this)
                return producer;
        Producer *found = recycled();
        if (found == nullptr) {
            found = new Producer;
            Producer *first = producers_.load(std::memory_order_relaxed);
            do found->next = first;
            while (!producers_.compare_exchange_weak(first, found, std::memory_order_release, std::memory_order_relaxed));
        }
        exit().mine.emplace_back(this, found);
        return found;
    }
    Producer *recycled() {
        for (Producer *p = producers_.load(std::memory_order_acquire); p; p = p->next) {
            bool left = true;
            if (p->inactive.load(std::memory_order_relaxed) &&
                p->inactive.compare_exchange_strong(left, false, std::memory_order_acquire, std::memory_order_relaxed))
                return p;
        }
        return nullptr;
    }
    bool take(Producer *p, T &value) {
        size_t overcommit = p->overcommit.load(std::memory_order_relaxed);
        if (p->optimistic.load(std::memory_order_relaxed) - overcommit >= p->tail.load(std::memory_order_relaxed))
            return false;
        std::atomic_thread_fence(std::memory_order_acquire);
        size_t count = p->optimistic.fetch_add(1, std::memory_order_relaxed);
        if (count - overcommit >= p->tail.load(std::memory_order_acquire)) {
            p->overcommit.fetch_add(1, std::memory_order_release);
            return false;
        }
        value = std::move(p->slots[p->head.fetch_add(1, std::memory_order_acq_rel) % Capacity]);
        return true;
    }

public:
    ~ImplicitQueue() {
        for (Producer *p = producers_.load(), *next; p; p = next) { next = p->next; delete p; }
    }
    bool enqueue(T value) {
        Producer *p = producer();
        size_t tail = p->tail.load(std::memory_order_relaxed);
        if (tail >= Capacity)
            return false;
        p->slots[tail] = std::move(value);
        p->tail.store(tail + 1, Publish);
        return true;
    }
    bool dequeue(T &value) {
        for (Producer *p = producers_.load(std::memory_order_acquire); p; p = p->next)
            if (take(p, value))
                return true;
        return false;
    }
    int producers() const {
        int n = 0;
        for (Producer *p = producers_.load(); p; p = p->next) n++;
        return n;
    }

private:
    std::atomic<Producer *> producers_{nullptr};
};

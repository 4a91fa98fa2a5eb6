// Hazard pointers in the style of Folly and of P2530: a record for each thread in a thread_local
// cache, with the thread's retired objects; what a thread leaves behind is freed by the domain. It
// knows nothing of pulsar_ml.
#pragma once
#include <algorithm>
#include <atomic>
#include <vector>

struct Retired { void *object; void (*destroy)(void *); };

template <bool Fenced, bool HandsOver> class HazardDomain {
    struct Record {
        std::atomic<void *> hazard{nullptr};
        std::atomic<bool> taken{true};
        Record *next = nullptr;
    };
    struct Cache {
        HazardDomain *domain = nullptr;
        Record *record = nullptr;
        std::vector<Retired> retired;
        ~Cache() {
            if (!domain)
                return;
            domain->reclaim(retired);
            if (HandsOver)
                domain->leave(std::move(retired));
            record->taken.store(false, std::memory_order_release);
        }
    };
    static Cache &cache() { thread_local Cache instance; return instance; }

    Cache &mine() {
        Cache &c = cache();
        if (c.domain == this)
            return c;
        c.domain = this;
        c.record = nullptr;
        for (Record *r = records_.load(std::memory_order_acquire); r && !c.record; r = r->next) {
            bool free = false;
            if (r->taken.compare_exchange_strong(free, true, std::memory_order_acquire, std::memory_order_relaxed))
                c.record = r;
        }
        if (!c.record) {
            c.record = new Record;
            c.record->next = records_.load(std::memory_order_relaxed);
            while (!records_.compare_exchange_weak(c.record->next, c.record, std::memory_order_acq_rel,
                                                   std::memory_order_relaxed)) {}
        }
        return c;
    }
    void leave(std::vector<Retired> &&retired) {
        for (Retired &r : retired) {
            Left *left = new Left{r, left_.load(std::memory_order_relaxed)};
            while (!left_.compare_exchange_weak(left->next, left, std::memory_order_release, std::memory_order_relaxed)) {}
        }
        retired.clear();
    }
    void reclaim(std::vector<Retired> &retired) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        std::vector<void *> guarded;
        for (Record *r = records_.load(std::memory_order_acquire); r; r = r->next)
            guarded.push_back(r->hazard.load(std::memory_order_acquire));
        auto kept = std::partition(retired.begin(), retired.end(), [&](const Retired &r) {
            return std::find(guarded.begin(), guarded.end(), r.object) != guarded.end(); });
        std::vector<Retired> freed(kept, retired.end());
        retired.erase(kept, retired.end());
        for (Retired &r : freed)
            r.destroy(r.object);
    }

public:
    ~HazardDomain() {
        for (Left *l = left_.load(), *next; l; l = next) { next = l->next; l->retired.destroy(l->retired.object); delete l; }
        for (Record *r = records_.load(), *next; r; r = next) { next = r->next; delete r; }
    }
    template <typename T> T *protect(const std::atomic<T *> &source) {
        std::atomic<void *> &hazard = mine().record->hazard;
        for (T *seen = source.load(std::memory_order_relaxed);;) {
            hazard.store(seen, std::memory_order_release);
            if (Fenced)
                std::atomic_thread_fence(std::memory_order_seq_cst);
            T *again = source.load(std::memory_order_acquire);
            if (again == seen)
                return seen;
            seen = again;
        }
    }
    void clear() { mine().record->hazard.store(nullptr, std::memory_order_release); }
    template <typename T> void retire(T *object) {
        Cache &c = mine();
        c.retired.push_back({object, [](void *o) { delete static_cast<T *>(o); }});
        reclaim(c.retired);
    }

private:
    struct Left { Retired retired; Left *next; };
    std::atomic<Record *> records_{nullptr};
    std::atomic<Left *> left_{nullptr};
};

// A pointer protected by read-copy-update: two epochs of readers, and a grace period before delete.
#include <atomic>
#include <cassert>
#include <thread>

class rcu {
    std::atomic<int> epoch{0};
    std::atomic<int> readers[2] = {};

  public:
    class guard {
        std::atomic<int> *count;

      public:
        explicit guard(rcu &domain)
        {
            for (;;) {
                int now = domain.epoch.load();
                count = &domain.readers[now];
                count->fetch_add(1);
                if (domain.epoch.load() == now)
                    return;
                count->fetch_sub(1);
            }
        }
        ~guard() { count->fetch_sub(1); }
        guard(const guard &) = delete;
    };

    void synchronize()
    {
        int old = epoch.load();
        epoch.store(1 - old);
        while (readers[old].load() != 0)
            std::this_thread::yield();
    }

    // Waits for the readers of the new epoch, and not for those that were there.
    void synchronize_buggy()
    {
        int old = epoch.load();
        epoch.store(1 - old);
        while (readers[1 - old].load() != 0)
            std::this_thread::yield();
    }
};

struct route {
    int host, port;
};

static rcu domain;
static std::atomic<route *> current{new route{1, 10}};

static void update(void (rcu::*synchronize)())
{
    std::thread reader([] {
        for (int i = 0; i < 2; ++i) {
            rcu::guard guard(domain);
            const route *seen = current.load(std::memory_order_acquire);
            assert(seen->port == seen->host * 10);
        }
    });
    route *old = current.exchange(new route{2, 20}, std::memory_order_acq_rel);
    (domain.*synchronize)();
    delete old;
    reader.join();
    delete current.load();
}

void test_rcu() { update(&rcu::synchronize); }
void test_rcu_buggy() { update(&rcu::synchronize_buggy); }

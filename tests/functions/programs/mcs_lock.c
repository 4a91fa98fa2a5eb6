#include "mcs.h"

#include <assert.h>
#include <threads.h>

static mcs_lock lock;
static int counter;
static void (*release)(mcs_lock *, mcs_node *);

static int add_twice(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        mcs_node node;
        mcs_acquire(&lock, &node);
        counter++;
        release(&lock, &node);
    }
    return 0;
}

static void run(void)
{
    thrd_t a, b;
    thrd_create(&a, add_twice, NULL);
    thrd_create(&b, add_twice, NULL);
    thrd_join(a, NULL);
    thrd_join(b, NULL);
    assert(counter == 4);
}

void test_mcs_lock(void)
{
    release = mcs_release;
    run();
}

void test_mcs_lock_buggy(void)
{
    release = mcs_release_buggy;
    run();
}

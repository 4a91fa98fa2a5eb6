/* Tests of slices: many classes, few, one failure that hides another, and ends of the process. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int first, second;
int plain;

static void run(void *(*one)(void *), void *(*other)(void *))
{
    pthread_t thread;
    pthread_create(&thread, 0, one, 0);
    other(0);
    pthread_join(thread, 0);
}

static void *add(void *unused)
{
    for (int i = 0; i < 4; i++) {
        first++;
        second++;
    }
    return unused;
}
static void *add_once(void *unused) { first++; second++; return unused; }
static void *write_plain(void *unused) { if (first) plain = 1; return unused; }
static void *announce(void *unused) { first = 1; plain = 2; return unused; }

static void *announce_both(void *unused)
{
    first = 1;
    atomic_store_explicit(&second, 1, memory_order_relaxed);
    atomic_store_explicit(&second, 2, memory_order_relaxed);
    plain = 2;
    return unused;
}
static void *look(void *unused)
{
    if (atomic_load_explicit(&second, memory_order_relaxed) == 1)
        assert(atomic_load_explicit(&second, memory_order_relaxed) != 2);
    else if (first)
        plain = 1;
    return unused;
}
static void *look_or_die(void *unused)
{
    int seen = atomic_load_explicit(&second, memory_order_relaxed);
    if (seen == 2 && !atomic_load_explicit(&first, memory_order_relaxed))
        exit(3);
    assert(seen != 1);
    return unused;
}
static void *announce_quietly(void *unused)
{
    first = 1;
    second = 1;
    second = 2;
    return unused;
}
static void *die(void *unused) { first++; exit(3); return unused; }

void test_many(void) { run(add, add); }
void test_few(void) { run(add_once, add_once); }
void test_race(void) { run(write_plain, announce); }
void test_two(void) { run(look, announce_both); }
void test_crash(void) { run(look_or_die, announce_quietly); }
void test_always(void) { run(die, die); }

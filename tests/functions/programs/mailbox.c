/* A mailbox of one slot on a mutex and a condition variable. */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct mailbox {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    bool full;
    int value;
};

static struct mailbox *mailbox_new(void)
{
    struct mailbox *box = calloc(1, sizeof *box);
    pthread_mutex_init(&box->mutex, NULL);
    pthread_cond_init(&box->arrived, NULL);
    return box;
}

static void mailbox_free(struct mailbox *box)
{
    pthread_cond_destroy(&box->arrived);
    pthread_mutex_destroy(&box->mutex);
    free(box);
}

static void mailbox_put(struct mailbox *box, int value)
{
    pthread_mutex_lock(&box->mutex);
    box->value = value;
    box->full = true;
    pthread_mutex_unlock(&box->mutex);
    pthread_cond_signal(&box->arrived);
}

static int mailbox_take(struct mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    while (!box->full)
        pthread_cond_wait(&box->arrived, &box->mutex);
    box->full = false;
    int value = box->value;
    pthread_mutex_unlock(&box->mutex);
    return value;
}

/* The mutex is released between the test and the wait: the signal may come there. */
static int mailbox_take_buggy(struct mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    bool full = box->full;
    pthread_mutex_unlock(&box->mutex);
    pthread_mutex_lock(&box->mutex);
    if (!full)
        pthread_cond_wait(&box->arrived, &box->mutex);
    box->full = false;
    int value = box->value;
    pthread_mutex_unlock(&box->mutex);
    return value;
}

static void *put_42(void *box)
{
    mailbox_put(box, 42);
    return NULL;
}

static void check_take(int (*take)(struct mailbox *))
{
    struct mailbox *box = mailbox_new();
    pthread_t thread;
    pthread_create(&thread, NULL, put_42, box);
    assert(take(box) == 42);
    pthread_join(thread, NULL);
    mailbox_free(box);
}

void test_mailbox(void) { check_take(mailbox_take); }
void test_mailbox_buggy(void) { check_take(mailbox_take_buggy); }

/* A stack of numbers that is a list; free functions, as C has them. UNLOCKED leaves a window open. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct node {
    int value;
    struct node *next;
} node;
typedef struct stack {
    pthread_mutex_t mutex;
    node *top;
    int capacity;
} stack;

static bool stack_init(stack *s, int capacity)
{
    s->capacity = capacity;
    return pthread_mutex_init(&s->mutex, NULL) == 0;
}

static void stack_clear(stack *s)
{
    for (node *next; s->top; s->top = next) {
        next = s->top->next;
        free(s->top);
    }
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static void stack_push(stack *s, int value)
{
    node *added = malloc(sizeof *added);
    added->value = value;
    pthread_mutex_lock(&s->mutex);
    added->next = s->top;
#ifdef UNLOCKED
    pthread_mutex_unlock(&s->mutex);
    pthread_mutex_lock(&s->mutex);
#endif
    s->top = added;
    pthread_mutex_unlock(&s->mutex);
}

/* Returns 0, or -11 when the stack is empty. */
static int stack_pop(stack *s, int *value)
{
    pthread_mutex_lock(&s->mutex);
    node *found = s->top;
    if (found) {
        *value = found->value;
        s->top = found->next;
    }
    pthread_mutex_unlock(&s->mutex);
    free(found);
    return found ? 0 : -11;
}

static void *stack_top(stack *s) { return s->top ? (void *)(long)s->top->value : NULL; }

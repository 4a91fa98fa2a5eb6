/* Wake-up trees (Abdulla et al., JACM 2017): the sequences of transitions that a node of the search
 * has yet to begin with. A branch ends where the search is free to go on as it likes. */

typedef struct {
    Footprint footprint;
    uint32_t child, next;         /* branches, in the order of their insertion; NONE: no more */
    uint8_t thread, last;
} Wakeup;

SHARED struct { Wakeup *all; uint32_t n, room, unused; } wakeups = {.unused = NONE};

/* The array with twice its room, or with the least one at first. NULL without memory. */
static void *grown(void *array, uint32_t *room, uint32_t least, size_t bytes)
{
    uint32_t wanted = *room ? 2 * *room : least;
    void *more = realloc(array, wanted * bytes);
    if (more)
        *room = wanted;
    return more;
}

static uint32_t new_wakeup(void)
{
    uint32_t at = wakeups.unused;
    if (at != NONE) {
        wakeups.unused = wakeups.all[at].next;
        return at;
    }
    if (wakeups.n == wakeups.room) {
        Wakeup *more = grown(wakeups.all, &wakeups.room, 1024, sizeof *more);
        if (more == NULL)
            return NONE;
        wakeups.all = more;
    }
    return wakeups.n++;
}

/* The branches from this one on, with all that is below them, are not needed any more. */
static void free_wakeups(uint32_t at)
{
    while (at != NONE) {
        uint32_t next = wakeups.all[at].next;
        free_wakeups(wakeups.all[at].child);
        wakeups.all[at].next = wakeups.unused;
        wakeups.unused = at;
        at = next;
    }
}

/* One transition of a sequence that reverses a race. The last one was made at another time. */
typedef struct { const Footprint *footprint; uint8_t thread; } Step;

/* Can this thread's next transition come first, and the sequence be made all the same? Its place in
 * the sequence, `n` when it is not there; -1: no. */
static int comes_first(const Step *steps, int n, int thread, const Footprint *footprint, int is_last)
{
    for (int i = 0; i < n; i++) {
        int unsure = (is_last ? FIRST_UNSURE : 0) | (i == n - 1 ? SECOND_UNSURE : 0);
        if (steps[i].thread == thread)
            return i;
        if (clash(footprint, steps[i].footprint, unsure))
            return -1;
    }
    return n;
}

/* Adds the sequence to the tree, whose first branch *at is, unless a branch stands for it. The
 * steps are used up. 0 without memory. */
static int insert_wakeups(uint32_t *at, Step *steps, int n)
{
    int is_root = 1;
    uint32_t branch = *at, parent = NONE;
    while (n) {
        for (; branch != NONE; branch = wakeups.all[branch].next) {
            const Wakeup *w = &wakeups.all[branch];
            int place = comes_first(steps, n, w->thread, &w->footprint, w->last);
            if (place < 0 || (place == n && is_root))
                continue;
            if (place < n) {
                memmove(&steps[place], &steps[place + 1], (size_t)(n - place - 1) * sizeof *steps);
                n--;
            }
            break;
        }
        if (branch == NONE)
            break;
        if (wakeups.all[branch].child == NONE)
            return 1;             /* everything behind this branch will be searched */
        parent = branch;
        is_root = 0;
        branch = wakeups.all[branch].child;
    }
    if (n == 0)
        return 1;
    for (int i = 0; i < n; i++) {
        uint32_t added = new_wakeup(), *end;
        if (added == NONE)
            return 0;
        wakeups.all[added] = (Wakeup){*steps[i].footprint, NONE, NONE, steps[i].thread, i == n - 1};
        end = is_root ? at : &wakeups.all[parent].child;
        while (*end != NONE)
            end = &wakeups.all[*end].next;
        *end = added;
        parent = added;
        is_root = 0;
    }
    return 1;
}

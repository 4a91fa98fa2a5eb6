/* How many executions of the search are left: Knuth's estimate (Mathematics of Computation, 1975)
 * in the form for a search that goes depth first. At each node of the path, a branch that the
 * search has yet to begin counts as the mean of those that it knows there. What races will add
 * later is not in it, so that an early estimate is low rather than high. */

/* The branches of a node, or the options of a choice of a value, that the search is done with. */
typedef struct {
    uint32_t n;
    double leaves, squares;       /* executions in them, and the sum of the squares */
    uint64_t start;               /* executions before the branch under way */
} Branches;

/* The branch under way is over, and the next one begins. */
static void end_branch(Branches *b, uint64_t executions)
{
    double leaves = (double)(executions - b->start);
    b->n++;
    b->leaves += leaves;
    b->squares += leaves * leaves;
    b->start = executions;
}

/* Executions of a subtree, and the variance of that number; n < 0: nothing is known so far. */
typedef struct { double n, variance; } Estimate;

static Estimate estimate_of(const Branches *b, Estimate below, uint32_t pending)
{
    double known = b->n, leaves = b->leaves, squares = b->squares, mean, variance;
    if (below.n >= 0) {
        known++;
        leaves += below.n;
        squares += below.n * below.n;
    } else {
        pending++;                /* the branch under way did not begin either */
    }
    if (known < 1)
        return (Estimate){-1, 0};
    mean = leaves / known;
    /* One branch says nothing of how far the others differ: as far as the mean. */
    variance = known > 1 ? (squares - leaves * mean) / (known - 1) : mean * mean;
    if (variance < 0)
        variance = 0;
    return (Estimate){leaves + pending * mean,
                      (below.n >= 0 ? below.variance * (1 + pending / known) * (1 + pending / known) : 0) +
                          pending * variance * (1 + pending / known)};
}

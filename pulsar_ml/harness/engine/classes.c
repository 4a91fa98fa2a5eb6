/* How many distinct executions were seen: a table of class hashes with counts. When it is half full it
 * keeps only the classes whose hash ends in one more zero bit, which is a uniform sample of them. */

enum { CLASS_SLOTS = 1 << 15 };

static struct {
    uint64_t hashes[CLASS_SLOTS];
    uint32_t counts[CLASS_SLOTS];
    uint32_t used;
    int shift;
} classes;

static void classes_reset(void)
{
    memset(&classes, 0, sizeof classes);
}

static void classes_halve(void)
{
    static uint64_t hashes[CLASS_SLOTS];
    static uint32_t counts[CLASS_SLOTS];
    memcpy(hashes, classes.hashes, sizeof hashes);
    memcpy(counts, classes.counts, sizeof counts);
    memset(classes.hashes, 0, sizeof classes.hashes);
    memset(classes.counts, 0, sizeof classes.counts);
    classes.used = 0;
    classes.shift++;
    for (int i = 0; i < CLASS_SLOTS; i++) {
        if (counts[i] == 0 || hashes[i] & ((UINT64_C(1) << classes.shift) - 1))
            continue;
        uint32_t at = (uint32_t)(hashes[i] >> 40) & (CLASS_SLOTS - 1);
        while (classes.counts[at])
            at = (at + 1) & (CLASS_SLOTS - 1);
        classes.hashes[at] = hashes[i];
        classes.counts[at] = counts[i];
        classes.used++;
    }
}

static inline void classes_note(uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 40) & (CLASS_SLOTS - 1);
    if (hash & ((UINT64_C(1) << classes.shift) - 1))
        return;
    while (classes.counts[at] && classes.hashes[at] != hash)
        at = (at + 1) & (CLASS_SLOTS - 1);
    if (classes.counts[at]++ == 0) {
        classes.hashes[at] = hash;
        if (++classes.used > CLASS_SLOTS / 2)
            classes_halve();
    }
}

static void classes_report(EngineStats *stats)
{
    uint64_t all = 0, once = 0, twice = 0;
    for (int i = 0; i < CLASS_SLOTS; i++) {
        all += classes.counts[i] > 0;
        once += classes.counts[i] == 1;
        twice += classes.counts[i] == 2;
    }
    stats->classes = all << classes.shift;
    stats->once = once << classes.shift;
    stats->twice = twice << classes.shift;
}

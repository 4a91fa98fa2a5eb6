/* How many distinct executions were seen: a table of class hashes with counts. When it is half full
 * it keeps only the classes whose hash ends in one more zero bit, which is a uniform sample of
 * them. */

enum { CLASS_SLOTS = 2 * ENGINE_CLASSES };

static struct {
    uint64_t hashes[CLASS_SLOTS];
    uint32_t counts[CLASS_SLOTS];
    uint32_t used, once, twice;   /* slots; and those of classes that were seen so often */
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
    classes.used = classes.once = classes.twice = 0;
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
        classes.once += counts[i] == 1;
        classes.twice += counts[i] == 2;
    }
}

static inline void classes_note(uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 40) & (CLASS_SLOTS - 1);
    if (hash & ((UINT64_C(1) << classes.shift) - 1))
        return;
    while (classes.counts[at] && classes.hashes[at] != hash)
        at = (at + 1) & (CLASS_SLOTS - 1);
    uint32_t before = classes.counts[at]++;
    if (before == 1) {
        classes.once--;
        classes.twice++;
    } else if (before == 2) {
        classes.twice--;
    } else if (before == 0) {
        classes.hashes[at] = hash;
        classes.once++;
        if (++classes.used > CLASS_SLOTS / 2)
            classes_halve();
    }
}

/* The hashes that the table holds, ENGINE_CLASSES at most; how many they are. */
static int classes_list(uint64_t *hashes)
{
    int found = 0;
    for (int i = 0; i < CLASS_SLOTS; i++)
        if (classes.counts[i])
            hashes[found++] = classes.hashes[i];
    return found;
}

static void classes_report(EngineStats *stats)
{
    stats->classes = (uint64_t)classes.used << classes.shift;
    stats->once = (uint64_t)classes.once << classes.shift;
    stats->twice = (uint64_t)classes.twice << classes.shift;
}

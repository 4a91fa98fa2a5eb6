/* The annotations of thread sanitizers, by which code says what instrumentation cannot see. A
 * release makes what its thread did before happen before what follows an acquire of the same
 * address. */

static void note_release(void *at, uint64_t pc)
{
    Thread *t = controlled();
    if (t == NULL)
        return;
    announce(t, (uintptr_t)at, 1);
    Object *o = find_object(t, at, OBJECT_NOTED);
    released(t, o, o->clock, OP_UNLOCK, pc);
}

static void note_acquire(void *at, uint64_t pc)
{
    Thread *t = controlled();
    if (t == NULL)
        return;
    change_lock_before(t, at, pc);
    announce(t, (uintptr_t)at, 1);
    acquired(t, find_object(t, at, OBJECT_NOTED), OP_LOCK, pc);
}

EXPORT void __tsan_acquire(void *at) { note_acquire(at, PC); }
EXPORT void __tsan_release(void *at) { note_release(at, PC); }

#define NOTED(name) EXPORT void name(const char *file, int line, const volatile void *at)
NOTED(AnnotateHappensBefore) { (void)file; (void)line; note_release((void *)(uintptr_t)at, PC); }
NOTED(AnnotateHappensAfter) { (void)file; (void)line; note_acquire((void *)(uintptr_t)at, PC); }
NOTED(AnnotateCondVarSignal) { (void)file; (void)line; note_release((void *)(uintptr_t)at, PC); }
NOTED(AnnotateCondVarSignalAll) { (void)file; (void)line; note_release((void *)(uintptr_t)at, PC); }
EXPORT void AnnotateCondVarWait(const char *file, int line, const volatile void *at, const volatile void *lock)
{
    (void)file; (void)line; (void)lock;
    note_acquire((void *)(uintptr_t)at, PC);
}

/* Locks made by hand. What the lock itself does is seen as it is; the notes add its order. Several
 * readers order only writers, for which the engine keeps a second clock. */
enum { NOTE_READ = 1 << 3, NOTE_TRY_FAILED = 1 << 5 };

static void note_locked(void *at, int reads, uint64_t pc)
{
    Thread *t = controlled();
    Object *o;
    if (t == NULL)
        return;
    change_lock_before(t, at, pc);
    announce(t, (uintptr_t)at, 1);
    o = find_object(t, at, OBJECT_NOTED);
    if (!reads)
        acquire_readers(t, o);
    acquired(t, o, OP_LOCK, pc);
}

static void note_unlocked(void *at, int reads, uint64_t pc)
{
    Thread *t = controlled();
    Object *o;
    if (t == NULL)
        return;
    announce(t, (uintptr_t)at, 1);
    o = find_object(t, at, OBJECT_NOTED);
    released(t, o, reads ? o->readers_clock : o->clock, OP_UNLOCK, pc);
}

static void note_new_lock(void *at, uint64_t pc)
{
    if (current)
        forget_objects(current, (uintptr_t)at, 1, pc);
}

EXPORT void __tsan_mutex_create(void *at, unsigned flags) { (void)flags; note_new_lock(at, PC); }
EXPORT void __tsan_mutex_destroy(void *at, unsigned flags) { (void)flags; note_new_lock(at, PC); }
EXPORT void __tsan_mutex_pre_lock(void *at, unsigned flags) { (void)at; (void)flags; }
EXPORT void __tsan_mutex_post_lock(void *at, unsigned flags, int recursion)
{
    (void)recursion;
    if (!(flags & NOTE_TRY_FAILED))
        note_locked(at, (flags & NOTE_READ) != 0, PC);
}
EXPORT int __tsan_mutex_pre_unlock(void *at, unsigned flags)
{
    note_unlocked(at, (flags & NOTE_READ) != 0, PC);
    return 1;
}
EXPORT void __tsan_mutex_post_unlock(void *at, unsigned flags) { (void)at; (void)flags; }
EXPORT void __tsan_mutex_pre_signal(void *at, unsigned flags) { (void)flags; note_release(at, PC); }
EXPORT void __tsan_mutex_post_signal(void *at, unsigned flags) { (void)at; (void)flags; }
EXPORT void __tsan_mutex_pre_divert(void *at, unsigned flags) { (void)at; (void)flags; }
EXPORT void __tsan_mutex_post_divert(void *at, unsigned flags) { (void)at; (void)flags; }

NOTED(AnnotateRWLockCreate) { (void)file; (void)line; note_new_lock((void *)(uintptr_t)at, PC); }
NOTED(AnnotateRWLockCreateStatic) { (void)file; (void)line; note_new_lock((void *)(uintptr_t)at, PC); }
NOTED(AnnotateRWLockDestroy) { (void)file; (void)line; note_new_lock((void *)(uintptr_t)at, PC); }
EXPORT void AnnotateRWLockAcquired(const char *file, int line, const volatile void *at, long writes)
{
    (void)file; (void)line;
    note_locked((void *)(uintptr_t)at, !writes, PC);
}
EXPORT void AnnotateRWLockReleased(const char *file, int line, const volatile void *at, long writes)
{
    (void)file; (void)line;
    note_unlocked((void *)(uintptr_t)at, !writes, PC);
}

/* Plain accesses that a thread makes meanwhile are no races; they still have to be in living
 * memory. */
static void ignore_accesses(uint8_t which, int begins)
{
    Thread *t = controlled();
    if (t)
        t->controlled = (uint8_t)(begins ? t->controlled | which : t->controlled & ~which);
}

#define SECTION(name, which)                                                                        \
    EXPORT void name##Begin(const char *file, int line) { (void)file; (void)line; ignore_accesses(which, 1); } \
    EXPORT void name##End(const char *file, int line) { (void)file; (void)line; ignore_accesses(which, 0); }
SECTION(AnnotateIgnoreReads, IGNORES_READS)
SECTION(AnnotateIgnoreWrites, IGNORES_WRITES)
EXPORT void __tsan_ignore_thread_begin(void) { ignore_accesses(IGNORES_READS | IGNORES_WRITES, 1); }
EXPORT void __tsan_ignore_thread_end(void) { ignore_accesses(IGNORES_READS | IGNORES_WRITES, 0); }

EXPORT void AnnotateBenignRaceSized(const char *file, int line, const volatile void *at, size_t bytes,
                                    const char *description)
{
    (void)file; (void)line; (void)description;
    if (current)
        allow_races((uintptr_t)at, bytes);
}
EXPORT void AnnotateBenignRace(const char *file, int line, const volatile void *at, const char *description)
{
    AnnotateBenignRaceSized(file, line, at, 8, description);
}

/* Notes that change nothing here. */
NOTED(AnnotateMutexIsUsedAsCondVar) { (void)file; (void)line; (void)at; }
NOTED(AnnotateMutexIsNotPHB) { (void)file; (void)line; (void)at; }
NOTED(AnnotatePCQCreate) { (void)file; (void)line; (void)at; }
NOTED(AnnotatePCQDestroy) { (void)file; (void)line; (void)at; }
NOTED(AnnotatePCQPut) { (void)file; (void)line; note_release((void *)(uintptr_t)at, PC); }
NOTED(AnnotatePCQGet) { (void)file; (void)line; note_acquire((void *)(uintptr_t)at, PC); }
NOTED(AnnotateTraceMemory) { (void)file; (void)line; (void)at; }
NOTED(AnnotateThreadName) { (void)file; (void)line; (void)at; }
EXPORT void AnnotateNewMemory(const char *file, int line, const volatile void *at, size_t bytes)
{
    (void)file; (void)line; (void)at; (void)bytes;
}
EXPORT void AnnotateFlushState(const char *file, int line) { (void)file; (void)line; }
EXPORT void AnnotateEnableRaceDetection(const char *file, int line, int enable)
{
    (void)file; (void)line;
    ignore_accesses(IGNORES_READS | IGNORES_WRITES, !enable);
}
EXPORT int RunningOnValgrind(void) { return 0; }
EXPORT void *__tsan_get_current_fiber(void) { return current; }

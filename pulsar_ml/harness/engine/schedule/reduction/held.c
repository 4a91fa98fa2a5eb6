/* Locks that are taken. A thread that would wait for one is not offered to a search with
 * reduction. */

static const Object *known_object(uintptr_t address, ObjectKind kind)
{
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].address == address && objects[i].kind == kind)
            return &objects[i];
    return NULL;
}

/* The units of a semaphore that no thread has used yet. */
static int first_units(sem_t *semaphore)
{
    int value = 0;
    sem_getvalue(semaphore, &value);
    return value;
}

/* Could no thread but its holder take it so now? */
static int is_taken(uintptr_t lock, LockUse use, int thread)
{
    const Object *o;
    switch (use) {
    case USE_MUTEX:
        o = known_object(lock, OBJECT_MUTEX);
        return o && o->owner >= 0 && o->owner != thread;
    case USE_READ: case USE_WRITE:
        o = known_object(lock, OBJECT_RWLOCK);
        return o && ((o->owner >= 0 && o->owner != thread) || (use == USE_WRITE && o->readers));
    case USE_UNIT:
        o = known_object(lock, OBJECT_SEMAPHORE);
        return (o && o->owner == -2 ? (int)o->count : first_units((sem_t *)lock)) <= 0;
    default:
        return 0;
    }
}

static int would_wait_for_lock(const Announced *next, int thread)
{
    return next->lock && !can_give_up(next->until, E.now_ns) && is_taken(next->lock, next->use, thread);
}

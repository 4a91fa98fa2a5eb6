/* A thread that would wait for a mutex is not offered to a search with reduction. */
static int would_wait_for_mutex(uintptr_t mutex, int thread)
{
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].address == mutex && objects[i].kind == OBJECT_MUTEX)
            return objects[i].owner >= 0 && objects[i].owner != thread;
    return 0;
}

static int mutex_is_free(uintptr_t mutex)
{
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].address == mutex && objects[i].kind == OBJECT_MUTEX)
            return objects[i].owner < 0;
    return 1;
}

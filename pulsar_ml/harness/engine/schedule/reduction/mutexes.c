/* What a search with reduction asks about a mutex: whether the thread would wait for it. */

static int would_wait_for_mutex(uintptr_t mutex, int thread)
{
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].address == mutex && objects[i].kind == OBJECT_MUTEX)
            return objects[i].owner >= 0 && objects[i].owner != thread;
    return 0;
}

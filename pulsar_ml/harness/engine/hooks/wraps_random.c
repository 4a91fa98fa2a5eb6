/* Random numbers of the system: another one at each call, equal ones in each execution. */

static uint64_t next_random(void)
{
    if (unlikely(E.reducing))
        give_up_reduction(UNREDUCED_LIBRARY);
    return mix64(UINT64_C(0x9E3779B97F4A7C15) * ++E.random_calls);
}

static void fill_random(void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += 8) {
        uint64_t word = next_random();
        memcpy((char *)to + done, &word, bytes - done < 8 ? bytes - done : 8);
    }
}

/* std::random_device::operator() */
EXPORT unsigned __wrap__ZNSt13random_device9_M_getvalEv(void *device)
{
    unsigned (*real)(void *) = NULL;
    if (current)
        return (unsigned)next_random();
    *(void **)&real = cxx_symbol("_ZNSt13random_device9_M_getvalEv");
    return real ? real(device) : 0;
}

EXPORT ssize_t __wrap_getrandom(void *to, size_t bytes, unsigned flags)
{
    if (current == NULL)
        return getrandom(to, bytes, flags);
    fill_random(to, bytes);
    return (ssize_t)bytes;
}

EXPORT int __wrap_getentropy(void *to, size_t bytes)
{
    if (current == NULL)
        return getentropy(to, bytes);
    fill_random(to, bytes);
    return 0;
}

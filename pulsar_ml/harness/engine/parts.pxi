# Where a search with reduction begins, where it goes on, and how much of it is left.


cdef int begin_at(Explorer explorer, path, int floor) except -1:
    """Set the first choices of a search without reduction, of which ``floor`` stay."""
    cdef const uint16_t[::1] choices
    if path and explorer.strategy not in SEARCHES:
        raise UsageError(f"a path is for the exhaustive strategies, not for {explorer.strategy!r}")
    if not 0 <= floor <= len(path):
        raise UsageError(f"the floor is {floor}; it should be 0 to {len(path)}, the length of the path")
    if not all([0 <= taken < 2**16 for taken in path]):
        raise UsageError("the choices of a path should be 0 to 65535")
    explorer.path_kept = choices = np.array(path, np.uint16)
    explorer.config.path = &choices[0] if len(choices) else NULL
    explorer.config.n_path = <int32_t>len(choices)
    explorer.config.floor = floor
    return 0


cdef int begin_search(Explorer explorer, begun, int unreduced, bint symmetry, preemptions) except -1:
    """Set where the search begins, why it was given up before, whether equal threads begin in the
    order of their numbers, and the most preemptions of a class; None: any number."""
    cdef int i, j
    cdef const uint64_t[::1] words
    bounded = preemptions is not None
    if (len(begun) or unreduced or symmetry or bounded) and explorer.strategy not in REDUCING:
        what = "a bound of preemptions" if bounded else "symmetry" if symmetry else "a part with reduction"
        raise UsageError(f"{what} is for {' and '.join(REDUCING)}, not for {explorer.strategy!r}")
    explorer.begun_kept = words = np.array(begun, np.uint64)
    explorer.config.begun = &words[0] if len(words) else NULL
    explorer.config.n_begun = <int32_t>len(words)
    explorer.config.unreduced = unreduced
    explorer.config.symmetric = explorer.symmetry = symmetry
    if bounded and not 0 <= preemptions < 2**31:
        raise UsageError(f"the bound of preemptions is {preemptions}; it should be 0 or more")
    explorer.most_preemptions = preemptions
    explorer.config.preemptions = preemptions if bounded else -1
    for i in range(explorer.config.n_threads):
        explorer.config.equal_before[i] = -1
        for j in range(i):
            if np.array_equal(explorer.arrays[j], explorer.arrays[i]):
                explorer.config.equal_before[i] = j
    return 0


def part_words(Explorer explorer):
    """Where a search with reduction goes on, as words; see schedule/reduction/parts.c."""
    cdef const uint64_t* words = NULL
    cdef int32_t i, length
    if not explorer.started:
        return explorer.begun_kept.copy()
    with explorer.mine():
        length = engine_part(&words)
        if length == 0:
            raise MemoryError("no memory for the rest of the search")
        kept = np.empty(length, np.uint64)
        for i in range(length):
            kept[i] = words[i]
        return kept


def executions_left(Explorer explorer) -> tuple[float, float]:
    """How many executions of a search with reduction are left, and the standard deviation of that
    estimate; -1 when nobody knows."""
    cdef double spread = 0
    with explorer.mine():
        number = engine_left(&spread)
        return number, spread

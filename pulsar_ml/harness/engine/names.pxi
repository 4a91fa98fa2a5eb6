# Names of the enumerations in engine.h, in their order, and the numbers that Python code needs.

MODES = ("sc", "tso", "c11")
ENDS = ("complete", "cut", "discarded", "blocked", "data race", "use after free", "double free", "bad free",
        "out of bounds", "leak", "uninitialised read", "deadlock", "livelock", "invariant", "assertion",
        "crash", "stack overflow", "endless loop", "lock misuse", "blocked call",
        "outside the engine's limits", "outside the engine's control", "not lock-free")
OPS = ("", "load", "store", "rmw", "cas", "fence", "yield", "read", "write", "allocate", "free", "lock",
       "unlock", "wait", "wake", "spawn", "join", "call", "return", "end", "flush", "switch", "buffer",
       "choose", "note", "look", "refuse")
CHOICES = ("thread", "read", "insert", "weak_failure", "spurious", "no_memory", "timeout", "reuse", "delay",
           "flush", "waiter", "pause", "hold", "turn", "value", "sleep")
ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
cdef dict LOCKS = {
    "": 0, "takes": CHANGE_TAKES, "gives": CHANGE_GIVES, "takes, gives": CHANGE_TAKES | CHANGE_GIVES,
    "call": CHANGE_CALL,
}
FAULTS = {"weak_failure": 1, "spurious": 2, "no_memory": 4, "timeout": 8}
STORES = ENGINE_STORES  # stores that a location remembers, unless told otherwise
LEAST_STORES, MOST_STORES = ENGINE_LEAST_STORES, ENGINE_MOST_STORES
BUFFER = ENGINE_BUFFER  # stores that a thread may hold back in mode tso
# turns of waiting loops that a search lets go on although nothing changed, unless told otherwise
SPINS = 2
TURNS = 16  # turns of loops within one operation that a search follows, unless told otherwise
STEP_LIMIT = 20000  # of an execution, unless told otherwise
REUSE = {"quarantine": 0, "reuse": 1, "mixed": 2}


def strategy_rows() -> list[tuple[str, str, int]]:
    """The engine's table of strategies: name, help sentence, kind."""
    cdef const EngineStrategy* row = engine_strategy(0)
    rows = []
    while row is not NULL:
        rows.append((row.name.decode(), row.help.decode(), row.kind))
        row = engine_strategy(<int32_t>len(rows))
    return rows


STRATEGIES = {name: help for name, help, _ in strategy_rows()}
SAMPLERS = tuple([name for name, _, kind in strategy_rows() if kind == STRATEGY_SAMPLES])
SEARCHES = tuple([name for name, _, kind in strategy_rows() if kind in (STRATEGY_SEARCHES, STRATEGY_REDUCES)])
REDUCING = tuple([name for name, _, kind in strategy_rows() if kind == STRATEGY_REDUCES])
OFFERED = tuple([name for name, _, kind in strategy_rows() if kind != STRATEGY_FOLLOWS])


cdef int number_of_order(name, more) except? -3:
    """The number of an order: of "" that of none, and "none" if ``more`` has it."""
    if name == "":
        return ORDER_KEPT
    if name in more:
        return NO_FENCE
    if name not in ORDERS:
        raise UsageError(f"order {name!r} is not known; use one of: {', '.join((*more, *ORDERS))}")
    return ORDERS.index(name)

"""Litmus programs of A64 with the verdicts of the literature.

Names and programs are those of Maranget, Sarkar and Sewell, "A Tutorial Introduction to the ARM and
POWER Relaxed Memory Models", 2012, with the verdicts of the model that is multi-copy atomic (Pulte
and others, "Simplifying ARM concurrency", POPL 2018). Those with LDAPR and exchanges were derived
by hand from aarch64.cat. `pol` and `poa` stand for STLR and LDAR, `poaq` for LDAPR.
"""

from __future__ import annotations

from dataclasses import dataclass

ALLOWED, FORBIDDEN = True, False


@dataclass(frozen=True, slots=True)
class Published:
    """A program, the values that its reads see in question, the final values, and the verdict.

    ``reads`` has for each thread what its reads return in order; ``finals`` the final values of
    the first cells, or none to leave them open.
    """

    name: str
    threads: tuple[str, ...]
    reads: tuple[tuple[int, ...], ...]
    verdict: bool
    finals: tuple[int, ...] = ()


def message(name: str, writer: str, reader: str, verdict: bool) -> Published:
    """The reader sees the flag y and not the data x."""
    return Published(f"MP{name}", (writer, reader), ((), (1, 0)), verdict)


def store_buffering(name: str, first: str, second: str, verdict: bool) -> Published:
    return Published(f"SB{name}", (first, second), ((0,), (0,)), verdict)


def exchanging(name: str, first: str, second: str, verdict: bool) -> Published:
    """Store buffering by exchanges, each of which sees 0."""
    return Published(f"SB{name}", (first, second), ((0, 0), (0, 0)), verdict)


def load_buffering(name: str, first: str, second: str, verdict: bool) -> Published:
    return Published(f"LB{name}", (first, second), ((1,), (1,)), verdict)


def both_writes(name: str, first: str, second: str, verdict: bool) -> Published:
    """Each thread's first write comes last."""
    return Published(f"2+2W{name}", (first, second), ((), ()), verdict, (2, 2))


def causality(name: str, second: str, third: str, verdict: bool) -> Published:
    """The third thread sees what the second one wrote after it saw x, and not x."""
    return Published(f"WRC{name}", ("str x 1", second, third), ((), (1,), (1, 0)), verdict)


def two_readers(name: str, first: str, second: str, verdict: bool) -> Published:
    """The readers see the two writes in different orders."""
    threads = ("str x 1", "str y 1", first, second)
    return Published(f"IRIW{name}", threads, ((), (), (1, 0), (1, 0)), verdict)


PUBLISHED = (
    message("", "str x 1; str y 1", "ldr y; ldr x", ALLOWED),
    message("+dmb+po", "str x 1; dmb ish; str y 1", "ldr y; ldr x", ALLOWED),
    message("+po+dmb", "str x 1; str y 1", "ldr y; dmb ish; ldr x", ALLOWED),
    message("+dmbs", "str x 1; dmb ish; str y 1", "ldr y; dmb ish; ldr x", FORBIDDEN),
    message("+dmb.st+dmb.ld", "str x 1; dmb ishst; str y 1", "ldr y; dmb ishld; ldr x", FORBIDDEN),
    message("+dmb.ld+dmb", "str x 1; dmb ishld; str y 1", "ldr y; dmb ish; ldr x", ALLOWED),
    message("+dmb+dmb.st", "str x 1; dmb ish; str y 1", "ldr y; dmb ishst; ldr x", ALLOWED),
    message("+dmb+addr", "str x 1; dmb ish; str y 1", "ldr y; ldr x addr", FORBIDDEN),
    message("+dmb+ctrl", "str x 1; dmb ish; str y 1", "ldr y; ldr x ctrl", ALLOWED),
    message("+popl+poap", "str x 1; stlr y 1", "ldar y; ldr x", FORBIDDEN),
    message("+popl+poaq", "str x 1; stlr y 1", "ldapr y; ldr x", FORBIDDEN),
    message("+popl+po", "str x 1; stlr y 1", "ldr y; ldr x", ALLOWED),
    message("+po+poap", "str x 1; str y 1", "ldar y; ldr x", ALLOWED),
    message("+polp+poap", "stlr x 1; str y 1", "ldar y; ldr x", ALLOWED),
    message("+popl+popa", "str x 1; stlr y 1", "ldr y; ldar x", ALLOWED),
    # What is ordered before a write is ordered before the thread's later ones of that cell.
    message("+popl-coi+poap", "str x 1; stlr y 2; str y 1", "ldar y; ldr x", FORBIDDEN),
    # A read of the thread's own write is early; an address carries the order on, a branch does not.
    Published(
        "PPOCA",
        ("str x 1; dmb ish; str y 1", "ldr y; str z 1 ctrl; ldr z; ldr x addr"),
        ((), (1, 1, 0)),
        ALLOWED,
    ),
    Published(
        "PPOAA",
        ("str x 1; dmb ish; str y 1", "ldr y; str z 1 addr; ldr z; ldr x addr"),
        ((), (1, 1, 0)),
        FORBIDDEN,
    ),
    store_buffering("", "str x 1; ldr y", "str y 1; ldr x", ALLOWED),
    store_buffering("+dmb+po", "str x 1; dmb ish; ldr y", "str y 1; ldr x", ALLOWED),
    store_buffering("+dmbs", "str x 1; dmb ish; ldr y", "str y 1; dmb ish; ldr x", FORBIDDEN),
    store_buffering("+dmb.sts", "str x 1; dmb ishst; ldr y", "str y 1; dmb ishst; ldr x", ALLOWED),
    store_buffering("+dmb.lds", "str x 1; dmb ishld; ldr y", "str y 1; dmb ishld; ldr x", ALLOWED),
    # LDAR waits for STLR, LDAPR does not.
    store_buffering("+poaqs", "stlr x 1; ldapr y", "stlr y 1; ldapr x", ALLOWED),
    store_buffering("+polas", "stlr x 1; ldar y", "stlr y 1; ldar x", FORBIDDEN),
    store_buffering("+polps", "stlr x 1; ldr y", "stlr y 1; ldr x", ALLOWED),
    load_buffering("", "ldr x; str y 1", "ldr y; str x 1", ALLOWED),
    load_buffering("+dmb+po", "ldr x; dmb ish; str y 1", "ldr y; str x 1", ALLOWED),
    load_buffering("+dmbs", "ldr x; dmb ish; str y 1", "ldr y; dmb ish; str x 1", FORBIDDEN),
    load_buffering("+datas", "ldr x; str y 1 data", "ldr y; str x 1 data", FORBIDDEN),
    load_buffering("+addrs", "ldr x; str y 1 addr", "ldr y; str x 1 addr", FORBIDDEN),
    load_buffering("+ctrls", "ldr x; str y 1 ctrl", "ldr y; str x 1 ctrl", FORBIDDEN),
    load_buffering("+data+po", "ldr x; str y 1 data", "ldr y; str x 1", ALLOWED),
    # A write waits for the addresses of the accesses before it.
    Published(
        "LB+addr-po+data",
        ("ldr x; ldr z addr; str y 1", "ldr y; str x 1 data"),
        ((1, 0), (1,)),
        FORBIDDEN,
    ),
    load_buffering("+poaps", "ldar x; str y 1", "ldar y; str x 1", FORBIDDEN),
    load_buffering("+popls", "ldr x; stlr y 1", "ldr y; stlr x 1", FORBIDDEN),
    load_buffering("+popl+poap", "ldr x; stlr y 1", "ldar y; str x 1", FORBIDDEN),
    load_buffering("+popl+po", "ldr x; stlr y 1", "ldr y; str x 1", ALLOWED),
    both_writes("", "str x 2; str y 1", "str y 2; str x 1", ALLOWED),
    both_writes("+dmb+po", "str x 2; dmb ish; str y 1", "str y 2; str x 1", ALLOWED),
    both_writes(
        "+dmb.sts", "str x 2; dmb ishst; str y 1", "str y 2; dmb ishst; str x 1", FORBIDDEN
    ),
    both_writes("+popls", "str x 2; stlr y 1", "str y 2; stlr x 1", FORBIDDEN),
    both_writes("+polps", "stlr x 2; str y 1", "stlr y 2; str x 1", ALLOWED),
    causality("", "ldr x; str y 1", "ldr y; ldr x", ALLOWED),
    causality("+po+addr", "ldr x; str y 1", "ldr y; ldr x addr", ALLOWED),
    causality("+data+po", "ldr x; str y 1 data", "ldr y; ldr x", ALLOWED),
    # A write is seen by all other threads at once.
    causality("+data+addr", "ldr x; str y 1 data", "ldr y; ldr x addr", FORBIDDEN),
    causality("+addrs", "ldr x; str y 1 addr", "ldr y; ldr x addr", FORBIDDEN),
    causality("+popl+poap", "ldr x; stlr y 1", "ldar y; ldr x", FORBIDDEN),
    two_readers("", "ldr x; ldr y", "ldr y; ldr x", ALLOWED),
    two_readers("+addr+po", "ldr x; ldr y addr", "ldr y; ldr x", ALLOWED),
    two_readers("+addrs", "ldr x; ldr y addr", "ldr y; ldr x addr", FORBIDDEN),
    two_readers("+dmbs", "ldr x; dmb ish; ldr y", "ldr y; dmb ish; ldr x", FORBIDDEN),
    two_readers("+poaps", "ldar x; ldr y", "ldar y; ldr x", FORBIDDEN),
    two_readers("+poaqs", "ldapr x; ldr y", "ldapr y; ldr x", FORBIDDEN),
    Published(
        "ISA2+dmb+addrs",
        ("str x 1; dmb ish; str y 1", "ldr y; str z 1 addr", "ldr z; ldr x addr"),
        ((), (1,), (1, 0)),
        FORBIDDEN,
    ),
    Published(
        "ISA2+dmb+po+addr",
        ("str x 1; dmb ish; str y 1", "ldr y; str z 1", "ldr z; ldr x addr"),
        ((), (1,), (1, 0)),
        ALLOWED,
    ),
    # The second thread sees y, and its write of x comes before the first thread's.
    Published(
        "S+dmb+po", ("str x 2; dmb ish; str y 1", "ldr y; str x 1"), ((), (1,)), ALLOWED, (2,)
    ),
    Published(
        "S+dmb+data",
        ("str x 2; dmb ish; str y 1", "ldr y; str x 1 data"),
        ((), (1,)),
        FORBIDDEN,
        (2,),
    ),
    Published(
        "S+dmb+ctrl",
        ("str x 2; dmb ish; str y 1", "ldr y; str x 1 ctrl"),
        ((), (1,)),
        FORBIDDEN,
        (2,),
    ),
    Published("S+popl+poap", ("str x 2; stlr y 1", "ldar y; str x 1"), ((), (1,)), FORBIDDEN, (2,)),
    # The second thread's write of y comes last, and it does not see x.
    Published("R", ("str x 1; str y 1", "str y 2; ldr x"), ((), (0,)), ALLOWED, (1, 2)),
    Published(
        "R+dmbs",
        ("str x 1; dmb ish; str y 1", "str y 2; dmb ish; ldr x"),
        ((), (0,)),
        FORBIDDEN,
        (1, 2),
    ),
    Published(
        "R+dmb+dmb.st",
        ("str x 1; dmb ish; str y 1", "str y 2; dmb ishst; ldr x"),
        ((), (0,)),
        ALLOWED,
        (1, 2),
    ),
    Published(
        "R+popl+pola", ("str x 1; stlr y 1", "stlr y 2; ldar x"), ((), (0,)), FORBIDDEN, (1, 2)
    ),
    Published("CoRR", ("str x 1", "ldr x; ldr x"), ((), (1, 0)), FORBIDDEN),
    Published("CoWW", ("str x 1; str x 2",), ((),), FORBIDDEN, (1,)),
    Published("CoWR", ("str x 1; ldr x", "str x 2"), ((0,), ()), FORBIDDEN),
    Published("CoRW1", ("ldr x; str x 1",), ((1,),), FORBIDDEN),
    Published("CoRW2", ("ldr x; str x 1", "str x 2"), ((2,), ()), FORBIDDEN, (2,)),
    Published("CoRW2, in order", ("ldr x; str x 1", "str x 2"), ((2,), ()), ALLOWED, (1,)),
    # Exchanges are atomic, whatever their instructions.
    Published("two SWP", ("swp x 1", "swp x 2"), ((0,), (0,)), FORBIDDEN),
    Published("two loops", ("ldxr/stxr x 1", "ldxr/stxr x 2"), ((0,), (0,)), FORBIDDEN),
    Published("a store within", ("ldxr/stxr x 1", "str x 2"), ((0,), ()), ALLOWED, (2,)),
    Published("a store within", ("ldxr/stxr x 1", "str x 2"), ((2,), ()), FORBIDDEN, (2,)),
    Published("two CAS", ("cas x 0 1", "cas x 0 2"), ((0,), (0,)), FORBIDDEN),
    # A relaxed exchange orders nothing else. An acquiring load that reads its store waits for its
    # load, as `refcount_release` needs; a plain load may be early.
    message("+popl+rmw-po", "str x 1; stlr y 1", "ldxr/stxr y 2; ldr x", ALLOWED),
    Published(
        "MP+popl+rmw-rfiaq-po",
        ("str x 1; stlr y 1", "ldxr/stxr y 2; ldapr y; ldr x"),
        ((), (1, 2, 0)),
        FORBIDDEN,
    ),
    Published(
        "MP+popl+rmw-rfi-addr",
        ("str x 1; stlr y 1", "ldxr/stxr y 2; ldr y; ldr x addr"),
        ((), (1, 2, 0)),
        ALLOWED,
    ),
    # Neither a loop of exclusives nor SWPA is a barrier behind its store; SWPAL is one.
    exchanging("+ldaxr-stlxr", "ldaxr/stlxr x 1; ldr y", "ldaxr/stlxr y 1; ldr x", ALLOWED),
    exchanging("+swpa", "swpa x 1; ldr y", "swpa y 1; ldr x", ALLOWED),
    exchanging("+swpal", "swpal x 1; ldr y", "swpal y 1; ldr x", FORBIDDEN),
    exchanging("+ldaxr-stlxr-la", "ldaxr/stlxr x 1; ldar y", "ldaxr/stlxr y 1; ldar x", FORBIDDEN),
)

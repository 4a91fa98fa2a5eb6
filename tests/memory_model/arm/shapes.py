"""The shapes in which the structures use memory orders, as litmus programs.

Each pair of docs/memory-ordering.md belongs to a shape. A shape has reads that must not happen, and
the programs with one order weakened by a step say which order is needed where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.memory_model.arm.a64 import DEPENDENCIES, TARGETS, translated, translation
from tests.memory_model.arm.compare import Verdicts, judged, shows
from tests.memory_model.litmus import (
    ACQ_REL,
    ACQUIRE,
    CAS,
    FENCE,
    RELAXED,
    RELEASE,
    SEQ_CST,
    Litmus,
    Operation,
    Outcome,
)
from tests.memory_model.programs import SC_FENCE, X, Y, Z, exchange, load, program, store

ACQUIRE_FENCE, RELEASE_FENCE = (Operation(FENCE, order=order) for order in (ACQUIRE, RELEASE))
# The next weaker orders.
WEAKER = {
    SEQ_CST: (ACQ_REL,),
    ACQ_REL: (ACQUIRE, RELEASE),
    ACQUIRE: (RELAXED,),
    RELEASE: (RELAXED,),
    RELAXED: (),
}

Reads = tuple[tuple[int, ...], ...]


def cas(cell: int, expected: int, value: int, order: int) -> Operation:
    return Operation(CAS, cell, order, value, expected)


@dataclass(frozen=True, slots=True)
class Shape:
    """A use of memory orders.

    Attributes:
        wrong: the values that the reads of the threads must not have, one of several.
        pairs: rows of the table of docs/memory-ordering.md: the release, and who reads it.
        depends: the thread and call of an access that depends on its thread's last load in some
            structures, and how: "addr", the address comes from it, or "ctrl", a branch does.
    """

    name: str
    program: Litmus
    wrong: tuple[Reads, ...]
    pairs: tuple[str, ...]
    depends: tuple[int, int, str] | None = None


SHAPES = (
    Shape(
        "message",
        program((store(X, 1), store(Y, 1, RELEASE)), (load(Y, ACQUIRE), load(X))),
        (((), (1, 0)),),
        (
            "tail after a new chunk | producers",
            "`open` of a range cache | a scan of all caches",
            "store of 0 in a slot | `map_slot`",
            "the size, after `left_at` | `registry_idle`",
            "a count, after the size or the settings | `cache_manager_task`",
        ),
    ),
    Shape(
        "address",
        program((store(X, 1), store(Y, 1, RELEASE)), (load(Y, ACQUIRE), load(X))),
        (((), (1, 0)),),
        (
            "store of the slot | `mpsc_peek`",
            "`next` of the old chunk | consumer",
            "`recent`, after the link of the page | `map_recall`",
            "a wrapper's place | `wrapper_holds`",
            "`map_show` | `map_shown`",
            "a cursor's group | `active_rank`",
            "`installed` | `directory_enter`",
            "a record's branch | `directory_find`",
        ),
        (1, 1, "addr"),
    ),
    Shape(
        "exchanged address",
        program((store(X, 1), exchange(Y, 1, RELEASE)), (load(Y, ACQUIRE), load(X))),
        (((0,), (1, 0)),),
        (
            "installing a chunk | `pool_ensure_chunk`, `scan_cache`",
            "slot exchange | `map_find`, `map_next`",
            "link exchange in a branch | readers",
            "`node_leave` | `node_is_sealed`",
            "exchange of `payload` | `entry_metadata`, `entry_copy_chained`",
            "exchange of `extra` | `entry_hold_reads`, `entry_reads`",
        ),
        (1, 1, "addr"),
    ),
    Shape(
        "taken message",
        program((store(X, 1), store(Y, 1, RELEASE)), (cas(Y, 1, 2, ACQUIRE), load(X))),
        (((), (1, 0)),),
        (
            "`refcount_publish` | `refcount_retain`",
            "`stamped_unlock_write` | `stamped_lock_write`, `stamped_lock_read`, `stamped_optimistic`",
            "store of 0 in a slot | an inserter that finds it free",
            "`node_start` | `node_reserve`",
        ),
    ),
    Shape(
        "hand-over",
        program((store(X, 1), exchange(Y, 1, RELEASE)), (exchange(Y, 2, ACQUIRE), load(X))),
        (((0,), (1, 0)),),
        (
            "`pool_give` | `pool_take`",
            "`stamped_unlock_read` | `stamped_lock_write`",
            "`monitor_leave` | `monitor_enter`",
            "exchange that leaves a spare chunk | `mpsc_new_chunk`",
            "`node_leave` | the leaver that seals",
            "exchange of `marker` or `size` | the other side's exchange",
            "exchange of `late` | a view's scan",
        ),
    ),
    # The thread between exchanges without an order of its own.
    Shape(
        "release sequence",
        program(
            (store(X, 1), exchange(Y, 1, RELEASE)),
            (exchange(Y, 2),),
            (exchange(Y, 3, ACQUIRE), load(X)),
        ),
        (((0,), (1,), (2, 0)),),
        (
            "tail after a new chunk | producers",
            "`refcount_publish` | `refcount_retain`",
            "`pool_give` | `pool_take`",
        ),
    ),
    # The next user writes what the last one read: only load buffering shows a mistake.
    Shape(
        "reuse",
        program((load(X), exchange(Y, 1, RELEASE)), (exchange(Y, 2, ACQUIRE), store(X, 1))),
        (((1, 0), (1,)),),
        (
            "`pool_give` | `pool_take`",
            "`stamped_unlock_read` | `stamped_lock_write`",
            "`node_leave` | the leaver that seals",
        ),
        (1, 1, "ctrl"),
    ),
    # Each of two holders releases; the last one acquires by a load of its own zero.
    Shape(
        "last holder",
        program(
            (store(X, 1), exchange(Y, 1, RELEASE)),
            (exchange(Y, 2, RELEASE), load(Y, ACQUIRE), load(X)),
        ),
        (((0,), (1, 2, 0)),),
        ("`refcount_release` | the last holder",),
    ),
    Shape(
        "last holder, reuse",
        program(
            (load(X), exchange(Y, 1, RELEASE)),
            (exchange(Y, 2, RELEASE), load(Y, ACQUIRE), store(X, 1)),
        ),
        (((1, 0), (1, 2)),),
        ("`refcount_release` | the last holder",),
        (1, 1, "ctrl"),
    ),
    Shape(
        "fences",
        program((store(X, 1), RELEASE_FENCE, store(Y, 1)), (load(Y), ACQUIRE_FENCE, load(X))),
        (((), (1, 0)),),
        (
            "fence before a page's label | `map_shows`",
            "fence before a page's label | `stamped_validate`",
        ),
    ),
    # y is a field, x the word: 1 with the writer inside, 2 behind the section.
    Shape(
        "sequence lock",
        program(
            (exchange(X, 1, ACQUIRE), RELEASE_FENCE, store(Y, 1), store(X, 2, RELEASE)),
            (load(X, ACQUIRE), load(Y), ACQUIRE_FENCE, load(X)),
        ),
        (((0,), (0, 1, 0)), ((0,), (2, 0, 2))),
        (
            "fence in `stamped_lock_write` | `stamped_validate`",
            "`stamped_unlock_write` | `stamped_lock_write`, `stamped_lock_read`, `stamped_optimistic`",
        ),
    ),
    # z is what the page shows, 0 before it was emptied and 2 by its next incarnation; y is the
    # label, x the version.
    Shape(
        "page taken again",
        program(
            (store(Z, 1), RELEASE_FENCE, store(Y, 1), store(X, 1, RELEASE), store(Z, 2, RELEASE)),
            (load(X, ACQUIRE), load(Y), ACQUIRE_FENCE, load(Z, ACQUIRE), load(X)),
        ),
        (((), (0, 1, 0, 0)), ((), (0, 0, 2, 0)), ((), (1, 0, 1, 1))),
        (
            "a page's `version` | `map_recall`",
            "fence before a page's label | `map_shows`",
            "`map_show` | `map_shown`",
        ),
    ),
    # z is the installed array, x the version, y a record of the array that z replaced.
    Shape(
        "array taken again",
        program(
            (store(Z, 1), store(X, 1, RELEASE), RELEASE_FENCE, store(Y, 1)),
            (load(X, ACQUIRE), load(Z), load(Y), ACQUIRE_FENCE, load(X)),
        ),
        (((), (0, 0, 1, 0)), ((), (1, 0, 0, 1)), ((), (1, 0, 1, 1))),
        ("`version`, then the fence before an array is reused | `directory_proved`",),
    ),
    Shape(
        "one sees the other",
        program((exchange(X, 1), SC_FENCE, load(Y)), (store(Y, 1), SC_FENCE, load(X))),
        (((0, 0), (0,)),),
        ("seq_cst fence in `ack_state_leave` | `ack_state_may_dispatch`",),
    ),
)


@dataclass(frozen=True, slots=True)
class Weakened:
    """A shape with one order weakened, and where the wrong reads are allowed.

    ``arm`` has the targets that show them, ``dependent`` those that still do with the dependency of
    the shape; ``buffering`` says that they only do so by load buffering.
    """

    shape: Shape
    call: Operation
    order: int
    c11: bool
    arm: tuple[str, ...]
    dependent: tuple[str, ...]
    buffering: bool


def verdicts(shape: Shape, weaker: Litmus, target: str, *, dependent: bool = False) -> Verdicts:
    """Judge a program of a shape as it is compiled for a target."""
    assembly = translated(weaker, translation(target))
    if dependent and shape.depends:
        thread, at, how = shape.depends
        rows = [list(row) for row in assembly.properties]
        rows[thread][at] |= DEPENDENCIES[how]
        assembly = replace(assembly, properties=tuple(map(tuple, rows)))
    return judged(assembly)


def is_wrong(shape: Shape, outcomes: set[Outcome]) -> bool:
    """True if the wrong reads are among the outcomes of the shape, weakened or not."""
    return any(shows(shape.program, outcomes, reads) for reads in shape.wrong)


def targets_of(shape: Shape, weaker: Litmus, *, dependent: bool = False) -> tuple[str, ...]:
    """Return the targets that show the wrong reads, by load buffering or not."""
    found = {each: verdicts(shape, weaker, each, dependent=dependent) for each in TARGETS}
    return tuple(
        each for each in TARGETS if is_wrong(shape, found[each].arm | found[each].buffering)
    )


def weakened(shape: Shape) -> Iterator[Weakened]:
    """Yield the shape with each of its orders weakened by a step, and the verdicts."""
    for t, calls in enumerate(shape.program.threads):
        for i, call in enumerate(calls):
            for order in WEAKER[call.order]:
                row = (*calls[:i], replace(call, order=order), *calls[i + 1 :])
                weaker = shape.program.with_thread(t, row)
                found = [verdicts(shape, weaker, each) for each in TARGETS]
                yield Weakened(
                    shape,
                    call,
                    order,
                    is_wrong(shape, found[0].c11),
                    targets_of(shape, weaker),
                    targets_of(shape, weaker, dependent=True),
                    not any(is_wrong(shape, each.arm) for each in found),
                )

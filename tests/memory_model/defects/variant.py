"""Compiles a copy of the engine with defects, one of which is chosen by an environment variable.

Each defect is a change of the engine's text, so that the engine itself has no hook for it. A change
whose text is no longer there is an error.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import os
import platform
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from pulsar_ml.harness.building.build import only_one_process
from tests import ROOT

ENGINE = "pulsar_ml/harness/engine"
MODULE = "pulsar_ml.harness.engine._engine"
VARIABLE = "PML_ENGINE_DEFECT"
REDUCTION = "schedule/reduction/"


@dataclass(frozen=True, slots=True)
class Defect:
    """A wrong rule: ``before``, which stands once in ``file``, becomes ``after``.

    ``DEFECT`` in ``after`` is true when this defect is the chosen one. ``kinds`` are the operations
    of which a program has to have one to notice it, in ``mode``; of ``faulty`` defects, one whose
    exchanges and allocations may fail; of ``bounded`` ones, a search within a bound of preemptions.
    """

    name: str
    file: str
    before: str
    after: str
    mode: str
    kinds: tuple[str, ...]
    faulty: bool = False
    bounded: bool = False


DEFECTS = (
    Defect(
        "release fences are ignored",
        "memory/atomics.c",
        "    if (is_release(order)) {\n        clock_copy(t->fenced",
        "    if (is_release(order) && !DEFECT) {\n        clock_copy(t->fenced",
        "c11",
        ("fence",),
    ),
    Defect(
        "a stale read is allowed after an acquire",
        "memory/memory.c",
        "    if (is_acquire(order)) {\n        entries_join",
        "    if (is_acquire(order) && !DEFECT) {\n        entries_join",
        "c11",
        ("load", "exchange", "cas"),
    ),
    Defect(
        "a read-modify-write ends a release sequence",
        "memory/memory.c",
        "    if (read && read->has_released) {",
        "    if (read && read->has_released && !DEFECT) {",
        "c11",
        ("exchange", "cas"),
    ),
    Defect(
        "a store is always the last one",
        "memory/atomics.c",
        "    if (only_newest(v, is_sc(order))) {\n        /* It enters behind all others. */",
        "    if (only_newest(v, is_sc(order)) || DEFECT) {\n"
        "        /* It enters behind all others. */",
        "c11",
        ("store",),
    ),
    Defect(
        "a read-modify-write leaves the store buffer",
        "memory/atomics.c",
        "    if (!common && t->buffer_count)\n        drain(t);\n"
        "    if (!common && unlikely(E.reducing))\n        note_emptied(t);\n"
        "    v = atomic_variable(common, t, address, width, OP_RMW",
        "    if (!common && t->buffer_count && !DEFECT)\n        drain(t);\n"
        "    if (!common && unlikely(E.reducing))\n        note_emptied(t);\n"
        "    v = atomic_variable(common, t, address, width, OP_RMW",
        "tso",
        ("exchange",),
    ),
    Defect(
        "a notification drains the store buffer",
        "hooks/locks.c",
        "    if (kind == OBJECT_FUTEX)\n        drain(t);",
        "    if (kind == OBJECT_FUTEX || DEFECT)\n        drain(t);",
        "tso",
        ("notify_one", "notify_all"),
    ),
    Defect(
        "a notification of one thread is one of all",
        "hooks/locks.c",
        "    while (o->blocked && most--) {",
        "    while (o->blocked && (DEFECT || most--)) {",
        "sc",
        ("notify_one",),
    ),
    Defect(
        "a lock does not synchronise",
        "hooks/locks.c",
        "    clock_join(t->clock, o->clock);\n    if (unlikely(E.x_used))\n        "
        "learn_fences(t, o->x_clock",
        "    if (!DEFECT)\n        clock_join(t->clock, o->clock);\n    if (unlikely(E.x_used))\n"
        "        learn_fences(t, o->x_clock",
        "c11",
        ("lock",),
    ),
    Defect(
        "an unlock is no step",
        "schedule/unlocking.c",
        "    if (!bounded && search_choose_late()) {",
        "    if (!DEFECT && !bounded && search_choose_late()) {",
        "sc",
        ("try_lock",),
    ),
    Defect(
        "a time-out fires before its deadline",
        "schedule/time.c",
        "        if (t->deadline <= E.now_ns)\n            expire(t);",
        "        if (t->deadline <= E.now_ns || DEFECT)\n            expire(t);",
        "sc",
        ("timed_wait", "lock_until", "lock_for"),
    ),
    Defect(
        "a time-out needs no fault",
        "hooks/locks.c",
        "    if (!(E.config.faults & FAULT_TIMEOUT) || !may_end_now(t, o))",
        "    if ((!(E.config.faults & FAULT_TIMEOUT) && !DEFECT) || !may_end_now(t, o))",
        "sc",
        ("timed_wait", "lock_until", "lock_for"),
    ),
    Defect(
        "a join does not synchronise",
        "schedule/spawn.c",
        "    clock_join(t->clock, u->clock);",
        "    if (!DEFECT)\n        clock_join(t->clock, u->clock);",
        "c11",
        ("join",),
    ),
    Defect(
        "a thread starts without what its starter knew",
        "schedule/spawn.c",
        "    clock_copy(u->clock, t->clock);",
        "    if (!DEFECT)\n        clock_copy(u->clock, t->clock);",
        "c11",
        ("spawn",),
    ),
    Defect(
        "a thread that waits for a mutex comes before nobody",
        REDUCTION + "races.c",
        "    return !waited || !node->lock ||",
        "    return DEFECT || !waited || !node->lock ||",
        "sc",
        ("lock",),
    ),
    Defect(
        "a thread that waits at the end comes before nobody",
        REDUCTION + "races.c",
        "    if (!next->lock)\n        return 1;",
        "    if (!next->lock || DEFECT)\n        return 1;",
        "sc",
        ("join",),
    ),
    Defect(
        "a sleeping thread is woken by nothing",
        REDUCTION + "picks.c",
        "        usual = clash(",
        "        usual = DEFECT ? NO_CLASH : clash(",
        "sc",
        ("load", "store"),
    ),
    Defect(
        "a store is taken for a load",
        REDUCTION + "nodes.c",
        "(op == OP_LOAD ? 0 : TOUCH_WRITES)",
        "(op == OP_LOAD || DEFECT ? 0 : TOUCH_WRITES)",
        "sc",
        ("load", "store"),
    ),
    Defect(
        "a store is not moved before a load",
        REDUCTION + "races.c",
        "    return known == READ_CLASH && could_store(at, first);",
        "    return known == READ_CLASH && could_store(at, first) && !DEFECT;",
        "c11",
        ("load",),
    ),
    Defect(
        "seq_cst accesses come in any order",
        REDUCTION + "nodes.c",
        "    if (order != __ATOMIC_SEQ_CST || E.config.mode != MODE_C11)",
        "    if (order != __ATOMIC_SEQ_CST || E.config.mode != MODE_C11 || DEFECT)",
        "c11",
        ("load", "store"),
    ),
    Defect(
        "a store leaves its buffer unnoticed",
        REDUCTION + "buffers.c",
        "    note_touch(KEY_ENDS + (uintptr_t)u->number, 1, TOUCH_OBJECT | TOUCH_WRITES",
        "    if (!DEFECT)\n        note_touch(KEY_ENDS + (uintptr_t)u->number, 1, "
        "TOUCH_OBJECT | TOUCH_WRITES",
        "tso",
        ("exchange", "cas", "fence", "lock"),
    ),
    Defect(
        "a thread with a full buffer begins no sequence",
        REDUCTION + "picks.c",
        "        if (node->full >> thread & 1 &&",
        "        if (!DEFECT && node->full >> thread & 1 &&",
        "tso",
        ("lock", "try_lock"),
    ),
    Defect(
        "a load and a store that leaves another thread's buffer come in any order",
        REDUCTION + "footprints.c",
        "    if (a->own == b->own)\n        return 1;",
        "    if (a->own == b->own || DEFECT)\n        return 1;",
        "tso",
        ("load", "store"),
    ),
    Defect(
        "nothing is searched behind a time-out beside a thread that waits for a mutex",
        REDUCTION + "nodes.c",
        "    reduction.stuck = 0;\n    reduction.ready = 0;",
        "    reduction.stuck &= DEFECT;\n    reduction.ready = 0;",
        "sc",
        ("lock_for", "timed_wait", "lock_until"),
    ),
    Defect(
        "an attempt that waited for its deadline comes before nobody",
        REDUCTION + "races.c",
        "    if (node->lock && !node->acquired && node->quiet) {",
        "    if (node->lock && !node->acquired && node->quiet && !DEFECT) {",
        "sc",
        ("lock_for", "lock_until"),
    ),
    Defect(
        "an attempt whose time is over waits all the same",
        REDUCTION + "races.c",
        "!(node->lock && can_give_up(",
        "!(node->lock && !DEFECT && can_give_up(",
        "sc",
        ("lock_for", "lock_until"),
    ),
    Defect(
        "a load finds its own store whatever its thread stored since",
        REDUCTION + "races.c",
        "reduction.nodes[i].entered == a->address)\n            return 0;",
        "reduction.nodes[i].entered == a->address && !DEFECT)\n            return 0;",
        "tso",
        ("load", "store"),
    ),
    Defect(
        "a load that finds its own store has an order with stores of others",
        REDUCTION + "nodes.c",
        "            f->touches[i].hides = hides;",
        "            f->touches[i].hides = DEFECT ? 0 : hides;",
        "tso",
        ("load", "store"),
    ),
    Defect(
        "a notification goes for one that wakes nobody",
        "hooks/locks.c",
        "        o->latest = t->step;\n    else if (unlikely(E.reducing))\n        note_failed",
        "        o->latest = t->step;\n    if ((woken == 0 || DEFECT) && unlikely(E.reducing))\n"
        "        note_failed",
        "sc",
        ("notify_one", "notify_all"),
    ),
    Defect(
        "what a transition touches without a fault is forgotten",
        REDUCTION + "picks.c",
        "u, fault == NO_CLASH);",
        "u, (fault == NO_CLASH) ^ DEFECT);",
        "sc",
        ("cas", "fence"),
        faulty=True,
    ),
    Defect(
        "a thread that sleeps with or without a fault is woken by nothing",
        REDUCTION + "picks.c",
        "    if (clash(kept, &before->footprint, BOTH_KNOWN))",
        "    if (!DEFECT && clash(kept, &before->footprint, BOTH_KNOWN))",
        "sc",
        ("timed_wait",),
    ),
    Defect(
        "a fault stands for a deadline whatever happened meanwhile",
        REDUCTION + "expiry.c",
        "o->latest == reduction.latest[last->number] &&",
        "(DEFECT || o->latest == reduction.latest[last->number]) &&",
        "sc",
        ("timed_wait",),
    ),
    Defect(
        "a fault stands for a deadline whoever looked at the clock meanwhile",
        REDUCTION + "expiry.c",
        "reduction.least[last->number] > deadline &&",
        "(DEFECT || reduction.least[last->number] > deadline) &&",
        "sc",
        ("timed_wait",),
    ),
    Defect(
        "what a thread touched before it was woken for a new store is forgotten",
        REDUCTION + "races.c",
        "1 || is_half)",
        "1 || (is_half && !DEFECT))",
        "c11",
        ("load",),
    ),
    Defect(
        "a weak exchange fails only where it could succeed",
        "memory/atomics.c",
        "            if (may_fail || m->low != *low",
        "            if ((may_fail && !DEFECT) || m->low != *low",
        "c11",
        ("cas",),
        faulty=True,
    ),
    Defect(
        "a thread that waited for a mutex was preempted",
        REDUCTION + "preemptions.c",
        "        if (touch->mode & TOUCH_HARD &&",
        "        if (touch->mode & TOUCH_HARD && !DEFECT &&",
        "sc",
        ("lock",),
        bounded=True,
    ),
    Defect(
        "a thread is preempted behind its last transition so far",
        REDUCTION + "preemptions.c",
        "    if (is_free(&at, thread))\n        return reach_state(at, preemptions, &linear.now);",
        "    if (is_free(&at, thread) && !(DEFECT && is_over(&at, thread)))\n"
        "        return reach_state(at, preemptions, &linear.now);",
        "sc",
        ("load", "store"),
        bounded=True,
    ),
)
NAMES = tuple(defect.name for defect in DEFECTS)


def compiled() -> Path:
    """Compile the copy, once for each state of its sources, and return its path."""
    sources = sorted((ROOT / ENGINE).rglob("[a-z]*.[ch]"))
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in (*sources, ROOT / ENGINE / "_engine.pyx", ROOT / "pulsar_ml/harness/subject.h"):
        digest.update(path.read_bytes())
    home = ROOT / "build" / "memory_model" / f"engine-{digest.hexdigest()[:12]}"
    target = home / f"_engine{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    with only_one_process(home):
        if not target.exists():
            copy_with_defects(sources, home)
            compile_into(home, target)
    return target


def copy_with_defects(sources: list[Path], home: Path) -> None:
    for path in sources:
        to = home / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
    for number, defect in enumerate(DEFECTS, start=1):
        path = home / ENGINE / defect.file
        text = path.read_text()
        if text.count(defect.before) != 1:
            raise ValueError(
                f"the defect {defect.name!r} changes a text that {defect.file} holds "
                f"{text.count(defect.before)} times; it should hold it once"
            )
        after = defect.after.replace("DEFECT", f"(engine_defect == {number})")
        path.write_text(text.replace(defect.before, after))
    engine = home / ENGINE / "engine.c"
    text = engine.read_text()
    opens = "int engine_open(const EngineConfig *config)\n{\n"
    includes = '#include "pulsar_ml/harness/engine/execution/random.c"\n'
    if text.count(opens) != 1 or text.count(includes) != 1:
        raise ValueError("engine.c has no engine_open() where a defect can be chosen")
    chosen = f'    engine_defect = atoi(getenv("{VARIABLE}"));\n'
    text = text.replace(opens, opens + chosen)
    engine.write_text(text.replace(includes, f"static int engine_defect;\n{includes}"))


def compile_into(home: Path, target: Path) -> None:
    """Compile the copy with little optimisation: that takes the longest here.

    Cython's part is that of the checkout, which is built.
    """
    wide = ["-march=x86-64-v2"] if platform.machine() in {"x86_64", "AMD64"} else []
    include = [f"-I{path}" for path in (home, ROOT, sysconfig.get_path("include"))]
    flags = ["-std=gnu11", "-w", "-fPIC", "-fno-strict-aliasing", "-fvisibility=hidden", *wide]
    compiler = os.environ.get("CC", "gcc")
    objects = []
    for source, level in (
        (ROOT / ENGINE / "_engine.c", "-O0"),
        (home / ENGINE / "engine.c", "-O1"),
    ):
        output = home / f"{source.stem}.o"
        command = [compiler, level, *flags, "-fexceptions", *include, "-c", str(source)]
        subprocess.run([*command, "-o", str(output)], check=True)
        objects.append(str(output))
    partial = target.with_suffix(".partial")
    linked = [compiler, "-shared", *objects, "-lpthread", "-lm", "-o", str(partial)]
    subprocess.run(linked, check=True)
    os.replace(partial, target)

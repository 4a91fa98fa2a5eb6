"""Mistakes in structures/refcount.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/refcount.pxd"

RELEASE = """
if i32_cas_weak_release(count, &seen, seen - references):
    if (seen & REFERENCES) > references:
        return RELEASED
    # Reads the zero just written, the end of every release's sequence. A load and not a
    # fence, because thread sanitizers understand it.
    i32_load_acquire(count)
    return RELEASED_LAST
"""

RETAIN_MARKED = """
if i32_cas_weak_acquire(count, &seen, (seen + 1) | REFERENCE_MARK):
    return True
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H01",
        title="retain adds first and looks afterwards",
        origin="#2993, fixed by #2995",
        file=FILE,
        old="""
while 0 < (seen & REFERENCES) < REFERENCES:
    if i32_cas_weak_acquire(count, &seen, seen + 1):
        return True
return False
""",
        new="""
if i32_fetch_add_relaxed(count, 1) & REFERENCES:
    return True
i32_fetch_sub_relaxed(count, 1)
return False
""",
        suite="refcount",
        breaks="I12, I18",
        cimports="from pulsar_ml.sync.atomics cimport i32_fetch_add_relaxed, i32_fetch_sub_relaxed",
        within=4_000,
    ),
    Mutant(
        id="M13",
        title="release loads, subtracts and stores",
        origin="port",
        file=FILE,
        old=RELEASE,
        new="""
i32_store_relaxed(count, seen - references)
return RELEASED if (seen & REFERENCES) > references else RELEASED_LAST
""",
        suite="refcount",
        breaks="I13, I14",
        cimports="from pulsar_ml.sync.atomics cimport i32_store_relaxed",
    ),
    Mutant(
        id="M11",
        title="a reference is given back by a relaxed exchange",
        origin="port",
        file=FILE,
        old=RELEASE,
        new=RELEASE.replace("i32_cas_weak_release", "i32_cas_weak_relaxed"),
        suite="refcount",
        breaks="I2, I14",
        cimports="from pulsar_ml.sync.atomics cimport i32_cas_weak_relaxed",
        mode="c11",
        within=6_000,
    ),
    Mutant(
        id="M11b",
        title="the last release does not acquire the other releases",
        origin="port",
        file=FILE,
        old=RELEASE,
        new=RELEASE.replace("i32_load_acquire(count)", "pass"),
        suite="refcount",
        breaks="I2, I14",
        mode="c11",
        within=6_000,
    ),
    Mutant(
        id="M14b",
        title="a count is published by a relaxed store",
        origin="port",
        file=FILE,
        old="i32_store_release(count, 1)",
        new="i32_store_relaxed(count, 1)",
        suite="refcount",
        breaks="I12, I34",
        cimports="from pulsar_ml.sync.atomics cimport i32_store_relaxed",
        mode="c11",
        within=4_000,
    ),
    Mutant(
        id="RF-mark",
        title="a read sets no mark of an access",
        origin="port",
        file=FILE,
        old=RETAIN_MARKED,
        new=RETAIN_MARKED.replace("(seen + 1) | REFERENCE_MARK", "seen + 1"),
        suite="removal_queue",
        breaks="I55",
    ),
)

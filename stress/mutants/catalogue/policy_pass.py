"""Mistakes in structures/policy_pass.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/policy_pass.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="L12",
        title="times are compared by their values, not by their difference",
        origin="all revisions read",
        file=FILE,
        old="return <int64_t>(<uint64_t>threshold - <uint64_t>timestamp) > 0",
        new="return timestamp < threshold",
        suite="removal_queue",
        breaks="I51, I64",
    ),
    Mutant(
        id="M35",
        title="the size is taken off twice",
        origin="port",
        file=FILE,
        old="run.uncounted += run.last.size",
        new="run.uncounted += 2 * run.last.size",
        suite="removal_queue",
        breaks="I40, I45",
    ),
    Mutant(
        id="PP-count",
        title="a pass forgets the bytes of one cache when it comes to the next",
        origin="port",
        file=FILE,
        old="""
pass_count(run)
run.cache = cache
""",
        new="run.cache = cache",
        suite="removal_queue",
        breaks="I40, I45",
    ),
    Mutant(
        id="PP-settle",
        title="a pass keeps the last wrappers that it dropped",
        origin="port",
        file=FILE,
        function="pass_settle",
        old="pool_give_all(&base.memory.wrappers, &run.dropped)",
        new="pass",
        suite="removal_queue",
        breaks="I23",
    ),
    Mutant(
        id="M29",
        title="a requeue keeps the accessed mark",
        origin="port",
        file=FILE,
        old="""
wrapper_mark_requeued(wrapper, &base.memory.map, now, charge)
entry_forget_access(&base.memory.entries, u32_load_relaxed(&wrapper.value))
""",
        new="wrapper_mark_requeued(wrapper, &base.memory.map, now, charge)",
        suite="removal_queue",
        breaks="I59",
    ),
)

"""The columns of a campaign's rows: name, kind and meaning, without Arrow.

Processes that run trials make rows from these names and stay small; :mod:`schema` makes Arrow
schemas of them. A new column is a row of one of these tables.
"""

from __future__ import annotations

from typing import NamedTuple

# The version of all tables; it changes with a column. 1 had no columns about the engine, 2 none
# about models, 3 none about logs and parts, and no table of chunks, 4 none about phases, 5 no
# number of runs.
SCHEMA_VERSION = 6

STRING, INT32, INT64, TIME = "string", "int32", "int64", "time"
EMPTY: dict[str, object] = {STRING: "", INT32: 0, INT64: 0}


class Column(NamedTuple):
    """A column; no column has nulls."""

    name: str
    kind: str
    meaning: str


# Columns of all tables.
KEY = (
    Column("run_id", STRING, "the run"),
    Column("chunk_id", INT64, "the chunk of the trial"),
    Column("suite", STRING, "the suite"),
    Column("seed", INT64, "the seed of the program"),
    Column("build_id", STRING, "build id of the native module"),
)

# Processor time of a trial by phase, in its order.
SPENT = ("draw_us", "create_us", "run_us", "wait_us", "check_us", "record_us", "judge_us")

# Further columns of a trial.
MEASURED = (
    Column("threads", INT32, "threads of the program"),
    Column("operations", INT64, "executed by all threads of the trial"),
    Column("overlaps", INT64, "pairs of operations that overlapped"),
    Column("runs", INT64, "runs of programs on real threads; 0 under the engine"),
    Column("engine", STRING, "threads or controlled"),
    Column("mode", STRING, "memory model; on real threads empty, as is each column to rest"),
    Column("strategy", STRING, "the engine's strategy"),
    Column("executions", INT64, "executions under the engine"),
    Column("steps", INT64, "steps under the engine"),
    Column("classes", INT64, "executions that differ in which store a load read"),
    Column("once", INT64, "classes seen exactly once"),
    Column("cut", INT64, "executions that the bound on steps ended"),
    Column("exhausted", STRING, "what an exhaustive search proved"),
    Column("bounds", STRING, "bounds that left executions out of it"),
    Column("part", STRING, 'the part of it that ran; "": the whole search'),
    Column("rest", STRING, "the unfinished rest of that part"),
    Column("judged", INT64, "histories compared with the suite's model"),
    Column("unknown", INT64, "histories whose check ran out of its budget"),
    Column("duration_us", INT64, "microseconds of the trial"),
    Column("draw_us", INT64, "of processor time: drawing programs; the next six likewise"),
    Column("create_us", INT64, "creating instances"),
    Column("run_us", INT64, "inside the concurrent run, or all executions"),
    Column("wait_us", INT64, "starting threads, and waiting for each other"),
    Column("check_us", INT64, "checking invariants behind the run"),
    Column("record_us", INT64, "short runs whose histories are recorded"),
    Column("judge_us", INT64, "comparing these with the model"),
    Column("verdict", STRING, "one of VERDICTS"),
    Column("host", STRING, "name of the machine"),
    Column("finished_at", TIME, "end of the trial"),
)

# Further columns of a violation.
VIOLATION = (
    Column("invariant", STRING, "id of the broken invariant"),
    Column("signature", STRING, "equal for violations of one kind"),
    Column("message", STRING, "what broke it, with the values"),
    Column("phase", STRING, "running or quiescence; running if the process died"),
    Column("replay", STRING, "a replay record or a failure, as JSON"),
    Column("executor", STRING, "Spark's executor; this and log are empty elsewhere"),
    Column("log", STRING, "path on the host, or URL, of the executor's output"),
    Column("unlisted", INT64, "violations of this signature without a row"),
)


def violation_row(**values: object) -> dict[str, object]:
    """Return a row of a violation; columns without a value are empty or 0.

    Raises TypeError for a name that is not a column.
    """
    row = {column.name: EMPTY[column.kind] for column in VIOLATION}
    if unknown := set(values) - set(row):
        raise TypeError(f"{min(unknown)!r} is not a column of violations")
    return row | values

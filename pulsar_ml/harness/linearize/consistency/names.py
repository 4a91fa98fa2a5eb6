"""The names of the criteria beside linearizability; a module of its own, because it is quick."""

from __future__ import annotations

SEQUENTIAL, QUIESCENT = "sequential", "quiescent"
YOURS, READS, FOLLOW = "read-your-writes", "monotonic-reads", "writes-follow-reads"
SESSION = "session"

GUARANTEES = (YOURS, READS, FOLLOW, SESSION)

# The name of each criterion on the command line, and in a sentence.
CRITERIA = {
    SEQUENTIAL: "sequentially consistent",
    QUIESCENT: "quiescently consistent",
    **{name: name.replace("-", " ") for name in (YOURS, READS, FOLLOW)},
    SESSION: "session guarantees",
}

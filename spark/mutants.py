"""``python -m spark.mutants``: known bugs against the true core, as sweeps."""

from __future__ import annotations

from stress.mutants.sweep import command

if __name__ == "__main__":
    command(prog_name="python -m spark.mutants")

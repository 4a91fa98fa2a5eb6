"""``python -m spark.mutants``: known bugs against the true core, as a sweep."""

from __future__ import annotations

from stress.mutants.sweep import main

if __name__ == "__main__":
    main(prog_name="python -m spark.mutants")

"""``python -m stress.mutants.table``: makes the kill table and its page."""

from __future__ import annotations

from stress.mutants.table.command import main

if __name__ == "__main__":
    main(prog_name="python -m stress.mutants.table")

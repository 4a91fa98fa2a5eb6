"""``python -m stress.mutants.automatic``: a sample of automatic mutants."""

from __future__ import annotations

from stress.mutants.automatic.command import main

if __name__ == "__main__":
    main(prog_name="python -m stress.mutants.automatic")

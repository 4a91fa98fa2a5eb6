"""``python -m stress.mutants.automatic``: a sample of automatic mutants."""

from stress.mutants.automatic.command import main

if __name__ == "__main__":
    main(prog_name="python -m stress.mutants.automatic")

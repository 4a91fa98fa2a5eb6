"""``python -m tests.bad_input COUNT``: mutated inputs for every parser, for as many as wanted.

A part of the cases runs in a process of its own, so that a crash of a library is a result, too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import click

from tests.bad_input.mutated import case, good_files, problems

PART = 2_000  # cases of a process


@click.command()
@click.argument("count", type=click.IntRange(1))
@click.option("--first", type=click.IntRange(0), default=0, help="Number of the first case.")
@click.option("--write", type=click.Path(path_type=Path), help="Write the first case to this file.")
def main(count: int, first: int, write: Path | None) -> None:
    """Reads COUNT mutated inputs, and prints each that a parser does not survive."""
    if write is not None:
        folder = write.with_name(f"{write.name}.good")
        folder.mkdir()
        name, content = case(good_files(folder), first)
        write.write_bytes(content)
        click.echo(f"case {first}, for the parser of {name}: {write}")
        return
    began, failed = time.monotonic(), 0
    for start in range(first, first + count, PART):
        failed += part(range(start, min(start + PART, first + count)))
        done = min(start + PART, first + count) - first
        rate = done / (time.monotonic() - began)
        click.echo(f"{done:,} of {count:,}, {failed:,} failed, {rate:,.0f}/s", err=True)
    click.echo(f"{count:,} mutated inputs, {failed:,} that a parser did not survive")
    sys.exit(1 if failed else 0)


def part(numbers: range) -> int:
    """Run cases in a child process and print the failures; return their number."""
    failed = 0
    while numbers:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w", 1) as out:
                for number, reason in problems(numbers):
                    out.write(f"{number} {reason!r}\n")
            os._exit(0)
        os.close(writing)
        last = numbers.start - 1
        with os.fdopen(reading) as found:
            for line in found:
                last = int(line.split()[0])
                failed += 1
                click.echo(line.rstrip())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            break
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        click.echo(f"the process of cases {last + 1} to {numbers.stop - 1} ended with {how}")
        failed += 1
        numbers = numbers[len(numbers) :] if status > 0 else range(numbers.stop, numbers.stop)
    return failed


if __name__ == "__main__":
    main()

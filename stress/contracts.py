"""The invariants in the headers of structures and on their pages, written from the table."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from pulsar_ml.errors import UsageError
from pulsar_ml.suites.invariants import OwnInvariant, Table, sentence

COLUMNS = 100
HEADING = "# Invariants   "
INDENT = "#" + " " * (len(HEADING) - 1)
SECTION = re.compile(rf"^{HEADING}.*\n(?:{INDENT}.*\n)*", re.MULTILINE)

BEGIN = "<!-- Written by `python -m stress invariants --write`. -->"
END = "<!-- End of the list. -->"
LIST = re.compile(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", re.DOTALL)


def with_runs(ids: Sequence[str]) -> str:
    """The ids with a dash for three or more in a row: "I1-I5, I9"."""
    runs: list[list[int]] = []
    for number in (int(id[1:]) for id in ids):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = []
    for run in runs:
        words += [f"I{run[0]}-I{run[-1]}"] if len(run) > 2 else [f"I{number}" for number in run]
    return ", ".join(words)


def header_section(invariants: Iterable[OwnInvariant]) -> str:
    """The lines of a header from "# Invariants" on."""
    lines: list[str] = []
    for each in invariants:
        of = f" ({with_runs(each.of)})" if each.of else ""
        lines += textwrap.wrap(
            f"{each.id}{of} {each.text}.",
            COLUMNS - len(INDENT),
            break_long_words=False,
            break_on_hyphens=False,
        )
    prefixes = [HEADING] + [INDENT] * (len(lines) - 1)
    return "".join(f"{prefix}{line}\n" for prefix, line in zip(prefixes, lines, strict=True))


def page_list(structure: str, table: Table) -> str:
    """The list of a page: the structure's own invariants, then those of its parts."""
    blocks = []
    for name in (structure, *table.pages.get(structure, ())):
        own = [each for each in table.own if each.structure == name]
        if not own:
            continue
        if name != structure:
            blocks.append(f"Of `{name}.pxd`:")
        blocks.append("\n".join(page_item(each) for each in own))
    return "\n\n".join([BEGIN, *blocks, END]) + "\n"


def page_item(invariant: OwnInvariant) -> str:
    of = f" ({', '.join(invariant.of)})" if invariant.of else ""
    return textwrap.fill(
        f"* **{invariant.id}**{of} {sentence(invariant.text)}",
        COLUMNS,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def replaced(path: Path, pattern: re.Pattern[str], section: str) -> str:
    """The file's text with its one section replaced. UsageError when it has none or several."""
    text = path.read_text()
    found = pattern.findall(text)
    if len(found) != 1:
        raise UsageError(
            f"{path} has {len(found)} sections for invariants; it should have one, which the "
            "table's sentences replace"
        )
    return pattern.sub(lambda _: section, text)


def with_contracts(table: Table, root: Path) -> dict[Path, str]:
    """Headers and pages of every structure in the table, with the texts that they should have."""
    found = {}
    structures = dict.fromkeys(each.structure for each in table.own)
    for structure in structures:
        own = [each for each in table.own if each.structure == structure]
        path = root / "pulsar_ml" / "structures" / f"{structure}.pxd"
        if not path.is_file():
            raise UsageError(f"{own[0].id} is of {structure}, but there is no {path}")
        found[path] = replaced(path, SECTION, header_section(own))
    for page in sorted((root / "docs" / "structures").glob("*.md")):
        found[page] = replaced(page, LIST, page_list(page.stem, table))
    return found

"""Compilers translate C11's operations as the oracle of AArch64 assumes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.memory_model.arm.a64 import LSE, RCPC, TARGETS, translation
from tests.memory_model.litmus import CAS, EXCHANGE, FENCE, LOAD, ORDER_NAMES, STORE

COMPILER = "aarch64-linux-gnu-gcc"
BODIES = {
    LOAD: "long {name}(long *c) {{ return __atomic_load_n(c, {order}); }}",
    STORE: "void {name}(long *c, long x) {{ __atomic_store_n(c, x, {order}); }}",
    EXCHANGE: "long {name}(long *c, long x) {{ return __atomic_exchange_n(c, x, {order}); }}",
    CAS: "long {name}(long *c, long e, long x) "
    "{{ __atomic_compare_exchange_n(c, &e, x, 0, {order}, 0); return e; }}",
    FENCE: "void {name}(void) {{ __atomic_thread_fence({order}); }}",
}
# A function's name, or an instruction on memory.
LINE = re.compile(r"^(\w+):|^\s+(dmb\s+\w+|(?:ld|st|swp|cas)\w*)", re.MULTILINE)


def compiled(target: str, folder: Path) -> dict[tuple[str, int], str]:
    """Compile a function for each kind of operation and order; return its instructions."""
    names = {f"{kind}_{ORDER_NAMES[order]}": (kind, order) for kind, order in translation(target)}
    source = folder / "operations.c"
    source.write_text(
        "\n".join(
            BODIES[kind].format(name=name, order=order) for name, (kind, order) in names.items()
        )
    )
    text = subprocess.run(
        [COMPILER, "-O2", "-S", "-o", "-", f"-march={target}", "-mno-outline-atomics", source],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found: dict[tuple[str, int], list[str]] = {call: [] for call in names.values()}
    for name, words in LINE.findall(text):
        if name:
            current = found.get(names.get(name, ("", 0)), [])
        else:
            current.append(" ".join(words.split()))
    return {call: "/".join(each) or "nothing" for call, each in found.items()}


@pytest.mark.parametrize("target", TARGETS)
def test_the_compiler_emits_these_instructions(target: str, tmp_path: Path) -> None:
    found = compiled(target, tmp_path)
    if target == RCPC and found[LOAD, 2] == "ldar":
        # GCC uses LDAPR from version 13 on; before, its code is that of armv8.1-a.
        target = LSE
    assert found == translation(target)

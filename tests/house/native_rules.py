"""The rules of native code: no exception, no GIL, no cell that is copied."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.house.architecture_rules import Sources, under

NATIVE = ("pulsar_ml/sync", "pulsar_ml/structures", "pulsar_ml/operations")
CELL = re.compile(r"pml_(u8|i32|u32|i64|u64|ptr)\b")

# Native calls of the binding that can take long, by the prefix of their names.
LONG_CALLS = (
    "memcpy", "payload_new", "cache_manager_next", "range_cache_look", "range_cache_delete",
    "eviction_destroy", "cache_memory_destroy", "cache_manager_put", "cache_manager_remove",
    "cache_manager_run", "cache_manager_evict", "cache_manager_look", "cache_manager_configure",
    "eviction_thread_start", "eviction_thread_stop", "eviction_thread_hold",
    "limiter_expire", "limiter_next_expiry", "limiter_close", "limiter_remaining",
    "pending_reads_read", "pending_reads_complete", "pending_reads_expire", "pending_reads_fail",
    "pending_reads_running", "pending_reads_invalidate", "monitor_enter",
    "active_cursors_(?:add|replace|update|remove|rank|slowest|look|destroy)",
    "cursor_heap_(?:add|replace|update|remove|slowest|look|destroy)",
    "eviction_thread_serves",
    r"delayed_(?:view|manager)_\w+",
    "ack_state_(?:add|end_ledger|configure|set_metadata|mark|contains|encode|restore|destroy|may_dispatch)",
)  # fmt: skip
# Calls of containers with few cursors hold the GIL: see cursors.pxi.
SHORT_WHILE_SMALL = "if self.is_small():"


def strip(text: str) -> str:
    """Code without comments and the contents of strings, line by line."""
    text = re.sub(r'"""[\s\S]*?"""', lambda match: '""' + "\n" * match[0].count("\n"), text)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"#.*", "", text)


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with their numbers: brackets are joined."""
    pending, start = "", 0
    for number, line in enumerate(strip(text).splitlines(), 1):
        if not pending:
            start = number
        pending += (" " + line.strip()) if pending else line.rstrip()
        if sum(pending.count(c) for c in "([{") > sum(pending.count(c) for c in ")]}"):
            continue
        if pending.strip():
            yield start, pending
        pending = ""


def native_functions_are_noexcept_nogil(sources: Sources) -> list[str]:
    found = []
    for path, text in under(sources, *NATIVE, ends=(".pxd",)):
        extern = False
        for number, line in statements(text):
            if not line.startswith(" "):
                extern = line.startswith("cdef extern")
                if (
                    re.match(r"(cdef|cpdef) (?!extern|struct|enum|class|packed|union)", line)
                    and "(" in line
                ):
                    if not re.search(r"\) noexcept nogil:?$", line):
                        found.append(f"{path}:{number} is not noexcept nogil: {line}")
                elif re.match(r"cdef (?!extern|struct|enum|class|packed|union|inline)", line):
                    found.append(f"{path}:{number} keeps state in a .pxd: {line}")
            elif (
                extern
                and re.search(r"\w\(.*\)", line)
                and not re.search(r"\) noexcept( nogil)?$", line)
            ):
                found.append(f"{path}:{number} is not noexcept: {line.strip()}")
            is_pointer = re.search(r"\(\*\w*\)\(.*\)|^ctypedef .*\(\*", line)
            if is_pointer and not line.endswith("noexcept nogil"):
                found.append(
                    f"{path}:{number} is a pointer to a function that may raise: {line.strip()}"
                )
    # In .pyx files a function with a Python signature may raise; one for native code may not.
    for path, text in under(sources, "pulsar_ml", ends=(".pyx", ".pxi")):
        for number, line in statements(text):
            if re.match(r"\s*cdef .*\).*\bnogil\b", line) and "noexcept" not in line:
                found.append(f"{path}:{number} is nogil and not noexcept: {line.strip()}")
    return found


def native_code_raises_nothing(sources: Sources) -> list[str]:
    words = re.compile(
        r"^\s*(raise|try|except|finally|import|from \S+ import|print|yield|assert)\b"
        r"|\bwith gil\b|\bobject\b"
    )
    return [
        f"{path}:{number}: {match[0].strip()}"
        for path, text in under(sources, *NATIVE, ends=(".pxd",))
        for number, line in statements(text)
        if (match := words.search(line))
    ]


# Cells -------------------------------------------------------------------------------------------

Structs = dict[str, dict[str, str]]


def structs(sources: Sources) -> Structs:
    """Fields of every cdef struct: name to type, the stars included, arrays without their size."""
    found: Structs = {}
    for _, text in under(sources, *NATIVE, "pulsar_ml/harness"):
        fields: dict[str, str] | None = None
        for _, line in statements(text):
            if match := re.match(r"cdef struct (\w+):", line):
                fields = found.setdefault(match[1], {})
            elif not line.startswith(" "):
                fields = None
            elif fields is not None and (
                match := re.match(r"\s+(?:const )?(\w+)(\*|\[\w+\])* (\w+)$", line)
            ):
                fields[match[3]] = match[1] + ("*" if match[2] == "*" else "")
    return found


def holds_cells(kind: str, known: Structs) -> bool:
    if CELL.fullmatch(kind):
        return True
    return any(
        holds_cells(field, known)
        for field in known.get(kind, {}).values()
        if not field.endswith("*")
    )


def kind_of(path: str, variables: dict[str, str], known: Structs) -> str:
    """The type of ``a.b[i].c``, as far as it is known; "" otherwise."""
    first, *rest = re.sub(r"\[[^\]]*\]", "[]", path).split(".")
    name, indexed = first.removesuffix("[]"), first.endswith("[]")
    kind = variables.get(name, "")
    if indexed:
        kind = kind.removesuffix("*")
    for part in rest:
        kind = known.get(kind.removesuffix("*"), {}).get(part.removesuffix("[]"), "")
    return kind


def cells_are_not_copied(sources: Sources) -> list[str]:
    """An assignment, an argument or a result by value would read and write a cell with no order."""
    known = structs(sources)
    found = []
    path_pattern = r"[A-Za-z_]\w*(?:\[[^\]]*\])?(?:\.\w+(?:\[[^\]]*\])?)*"
    for path, text in under(sources, *NATIVE, ends=(".pxd",)):
        variables: dict[str, str] = {}
        for number, line in statements(text):
            if header := re.match(
                r"cdef (?:inline )?(?:const )?(\w+)(\**) \w+\((.*)\) noexcept", line
            ):
                variables = {}
                if not header[2] and holds_cells(header[1], known):
                    found.append(f"{path}:{number} returns a {header[1]} by value")
                for kind, stars, name in re.findall(
                    r"(?:const )?(\w+)(\**) (\w+)(?:,|$|\s*=)", header[3]
                ):
                    variables[name] = kind + stars
                    if not stars and holds_cells(kind, known):
                        found.append(f"{path}:{number} takes a {kind} by value")
                continue
            if local := re.match(r"\s+cdef (?:const )?(\w+)(\**) (\w+)", line):
                variables[local[3]] = local[1] + local[2]
            if match := re.match(rf"\s+({path_pattern}) = (.*)$", line.replace("cdef ", "")):
                left = kind_of(match[1], variables, known)
                right = match[2].strip()
                bare = kind_of(right, variables, known) if re.fullmatch(path_pattern, right) else ""
                if holds_cells(left, known) or holds_cells(bare, known):
                    found.append(f"{path}:{number} copies a cell: {line.strip()}")
            elif (
                match := re.match(rf"\s+cdef (\w+) \w+ = ({path_pattern})$", line)
            ) and holds_cells(kind_of(match[2], variables, known), known):
                found.append(f"{path}:{number} copies a cell: {line.strip()}")
    return found


# The GIL -----------------------------------------------------------------------------------------


def long_calls_release_the_gil(sources: Sources) -> list[str]:
    """Long native calls of the binding stand in a ``with nogil`` block or a nogil function."""
    found = []
    pattern = re.compile(r"\b(" + "|".join(LONG_CALLS) + r")\(")
    binding = [
        *under(sources, "pulsar_ml", ends=("_core.pyx",)),
        *under(sources, "pulsar_ml/binding"),
    ]
    for path, text in binding:
        blocks: list[tuple[int, bool]] = []
        for number, line in statements(text):
            indent = len(line) - len(line.lstrip())
            while blocks and blocks[-1][0] >= indent:
                blocks.pop()
            if (match := pattern.search(line)) and not any(free for _, free in blocks):
                found.append(f"{path}:{number} holds the GIL in {match[1]}")
            if line.endswith(":"):
                free = "nogil" in line or line.strip() == SHORT_WHILE_SMALL
                blocks.append((indent, free))
    return found


# Forks -------------------------------------------------------------------------------------------


def native_calls_pass_the_gate(sources: Sources) -> list[str]:
    """Each ``with nogil`` block of the binding begins with native_enter and ends with native_leave.

    So a fork waits for it, and the child has none of its locks. fork.pxi shuts the gate, and
    close() of a range cache waits without a lock.
    """
    found = []
    for path, text in under(sources, "pulsar_ml/binding"):
        if path.endswith("/fork.pxi"):
            continue
        lines = [(number, line) for number, line in statements(text) if line.strip()]
        for start, (number, line) in enumerate(lines):
            if line.strip() != "with nogil:":
                continue
            indent = len(line) - len(line.lstrip())
            block = []
            for _, inner in lines[start + 1 :]:
                if len(inner) - len(inner.lstrip()) <= indent:
                    break
                block.append(inner.strip())
            if block[0].startswith("wait_while_equal("):
                continue
            if (block[0], block[-1]) != ("native_enter()", "native_leave()"):
                found.append(f"{path}:{number} runs without the GIL outside the gate")
    return found

"""Variables of a module by their addresses, from its debug information (DWARF) and symbols.

The package pyelftools reads both. It is imported, and a module is read, when a failure is printed.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SKIPPED = re.compile(r"std$|__gnu_cxx$|__|pml_|pthread$")  # namespaces that are not the user's
OF_LIBRARY = re.compile(r"_M_|__|_[A-Z]")  # members of a library's types
SAME_TYPE = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_atomic_type")
CLASSES = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")
COUNTS = 16  # bytes in front of an object that std::make_shared allocated
ADDRESS, FRAME_POINTER, FRAME_OFFSET, FRAME_END = 0x03, 0x56, 0x91, 0x9C  # operations of DWARF
# The bytes between a frame's end and what places in it count from: GCC counts from the end, Clang
# from the frame pointer, above which its old value and the return address are.
BASES: dict[tuple[int, ...], int] = {(FRAME_END,): 0, (FRAME_POINTER,): 16}
# A function that aligns its stack anew: its frame does not end above the frame pointer.
REALIGNS = (b"\x4c\x8d\x54\x24\x08", b"\xf3\x0f\x1e\xfa\x4c\x8d\x54\x24\x08")
STRUCTURE = "PmlObject"  # the type of a structure in generated operations; see c_glue.py
CYTHON = re.compile(r"__pyx_(?:v|pv|k|vp)_")

Die = Any  # of pyelftools, which has no types


class Located(NamedTuple):
    """A place in an object: the object's name and bytes, the place's distance, and its member."""

    name: str
    size: int
    offset: int
    member: str

    def __str__(self) -> str:
        return self.name + self.member


@functools.cache
def debug_info(module: str) -> DebugInfo | None:
    """The debug information of a checked module; None for another file, which may be large."""
    from elftools.common.exceptions import DWARFError, ELFError

    try:
        found = DebugInfo(Path(module))
        if found.is_checked():
            found.read()
            return found
    except (OSError, ELFError, DWARFError):
        pass
    return None


class DebugInfo:
    """Variables, functions and classes of a module, at the top of its units and in namespaces."""

    def __init__(self, path: Path) -> None:
        from elftools.elf.elffile import ELFFile

        self.content = path.read_bytes()
        self.elf = ELFFile(io.BytesIO(self.content))
        self.variables: list[tuple[int, Die]] = []
        self.functions: list[tuple[int, int, Die]] = []
        self.classes: dict[str, list[Die]] = {}  # and numbers, by name
        self.ranges: Any = None

    def is_checked(self) -> bool:
        from elftools.elf.sections import SymbolTableSection

        table = self.elf.get_section_by_name(".dynsym")
        return (
            isinstance(table, SymbolTableSection)
            and table.get_symbol_by_name("__tsan_func_entry") is not None
        )

    def read(self) -> None:
        if self.elf.has_dwarf_info():
            dwarf = self.elf.get_dwarf_info(follow_links=False)
            self.ranges = dwarf.range_lists()
            for unit in dwarf.iter_CUs():
                for die in unit.get_top_DIE().iter_children():
                    self.enter(die)

    def enter(self, die: Die) -> None:
        tag = die.tag
        if tag == "DW_TAG_variable":
            if (start := static_address(die)) is not None:
                self.variables.append((start, die))
        elif tag == "DW_TAG_subprogram":
            self.functions += [(low, high, die) for low, high in self.code_of(die)]
        elif tag in CLASSES:
            name = name_of(die)
            if name and not OF_LIBRARY.match(name):
                self.classes.setdefault(name.partition("<")[0], []).append(die)
                for child in die.iter_children():
                    if child.tag in CLASSES:
                        self.enter(child)
        elif tag == "DW_TAG_base_type":
            self.classes.setdefault(name_of(die), []).append(die)
        elif tag == "DW_TAG_typedef":
            kind = typed(die)  # in C a typedef may be the only name of a class
            if kind is not None and (not name_of(kind) or name_of(die) == STRUCTURE):
                self.classes.setdefault(name_of(die), []).append(kind)
        elif tag == "DW_TAG_namespace" and not SKIPPED.match(name_of(die)):
            for child in die.iter_children():
                self.enter(child)

    def code_of(self, die: Die) -> Iterator[tuple[int, int]]:
        """The parts of a function's code, from and to an offset: rarely used code lies apart."""
        found = die.attributes
        if "DW_AT_low_pc" in found and "DW_AT_high_pc" in found:
            low, high = found["DW_AT_low_pc"].value, found["DW_AT_high_pc"]
            yield low, high.value + (0 if high.form == "DW_FORM_addr" else low)
        elif "DW_AT_ranges" in found and self.ranges is not None:
            base = die.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
            base = base.value if base is not None else 0
            for part in self.ranges.get_range_list_at_offset(found["DW_AT_ranges"].value, die.cu):
                if hasattr(part, "base_address"):
                    base = part.base_address
                else:
                    start = 0 if getattr(part, "is_absolute", False) else base
                    yield start + part.begin_offset, start + part.end_offset

    def variable_at(self, offset: int) -> Located | None:
        """The static variable at ``offset`` of the module, or None."""
        for start, die in self.variables:
            if 0 <= offset - start < size_of(typed(die)):
                return located(plain_name(qualified(die)), typed(die), offset - start)
        for start, die in self.statics:
            if 0 <= offset - start < size_of(typed(die)):
                return located(name_of(die), typed(die), offset - start)
        return self.symbol_at(offset)

    @functools.cached_property
    def statics(self) -> list[tuple[int, Die]]:
        """The static variables of functions."""
        around = {each.offset: each for _, _, die in self.functions for each in with_origin(die)}
        return [
            (start, child)
            for die in around.values()
            for child in die.iter_children()
            if child.tag == "DW_TAG_variable" and (start := static_address(child)) is not None
        ]

    def symbol_at(self, offset: int) -> Located | None:
        from elftools.elf.sections import SymbolTableSection

        table = self.elf.get_section_by_name(".symtab")
        if not isinstance(table, SymbolTableSection):
            return None
        for symbol in table.iter_symbols():
            start, size = symbol["st_value"], symbol["st_size"]
            if symbol["st_info"]["type"] == "STT_OBJECT" and 0 <= offset - start < size:
                name = plain_name(symbol.name)
                if not name.startswith("_"):
                    return Located(name, size, offset - start, distance_text(offset - start))
        return None

    def local_at(self, function: int, distance: int) -> Located | None:
        """A local variable, or None.

        ``function`` is an offset of the module in the code of the function; ``distance`` is that of
        the address to the end of the function's frame.
        """
        for low, high, die in self.functions:
            if low <= function < high:
                below = BASES.get(tuple(operation(die, "DW_AT_frame_base")))
                if below is None or self.realigns(low):
                    return None
                place = distance + below
                found = {
                    located(name_of(variable), typed(variable), place - start)
                    for variable, start in locals_of(die)
                    if 0 <= place - start < size_of(typed(variable)) and name_of(variable)
                }
                return found.pop() if len(found) == 1 else None
        return None

    def realigns(self, function: int) -> bool:
        for segment in self.elf.iter_segments():
            start = segment["p_vaddr"]
            if segment["p_type"] == "PT_LOAD" and start <= function < start + segment["p_filesz"]:
                at = function - start + segment["p_offset"]
                return self.content[at : at + 9].startswith(REALIGNS)
        return True

    def knows(self, type_name: str) -> bool:
        """True for a number or a class of the module."""
        return type_name.rpartition("::")[2] in self.classes

    def member_of(
        self, type_name: str, size: int, offset: int, *, counted: bool = False
    ) -> str | None:
        """The member at ``offset`` of a block of memory for one object of a type, or for many.

        ``counted``: the object lies behind the counts of a std::shared_ptr. None when no type of
        this name fits the block's size.
        """
        for die in self.classes.get(type_name.rpartition("::")[2], []):
            each = size_of(die)
            if counted and each and 0 <= size - COUNTS - each < COUNTS:
                return member_at(die, offset - COUNTS) if offset >= COUNTS else ".counts"
            if each == size:
                return member_at(die, offset)
            if each and size % each == 0 and not counted:
                return f"[{offset // each}]{member_at(die, offset % each)}"
        return None


def located(name: str, kind: Die | None, offset: int) -> Located:
    return Located(name, size_of(kind), offset, member_at(kind, offset))


def distance_text(offset: int) -> str:
    return f"+{offset}" if offset else ""


def locals_of(die: Die) -> Iterator[tuple[Die, int]]:
    """The variables of a function and of inlined calls, with their place in its frame."""
    for child in die.iter_children():
        if child.tag in VARIABLES:
            location = operation(child)
            if location and location[0] == FRAME_OFFSET:
                yield child, signed_leb(location[1:])
        elif child.tag in ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine"):
            yield from locals_of(child)


def static_address(die: Die) -> int | None:
    location = operation(die)
    return int.from_bytes(bytes(location[1:9]), "little") if location[:1] == [ADDRESS] else None


def with_origin(die: Die) -> Iterator[Die]:
    yield die
    if (declared := origin(die)) is not None:
        yield from with_origin(declared)


def signed_leb(content: list[int]) -> int:
    value = shift = 0
    for byte in content:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value - (1 << shift) if byte & 0x40 else value
    return value


def operation(die: Die, name: str = "DW_AT_location") -> list[int]:
    """The bytes of an expression; none for a list of locations."""
    found = die.attributes.get(name)
    return list(found.value) if found is not None and isinstance(found.value, list) else []


def origin(die: Die) -> Die | None:
    """The declaration of a definition, or the function of an inlined copy."""
    for name in ("DW_AT_specification", "DW_AT_abstract_origin"):
        if name in die.attributes:
            return die.get_DIE_from_attribute(name)
    return None


def name_of(die: Die) -> str:
    found = die.attributes.get("DW_AT_name")
    if found is not None:
        return str(found.value.decode(errors="replace"))
    declared = origin(die)
    return name_of(declared) if declared is not None else ""


def qualified(die: Die) -> str:
    """The name of a variable behind its class; namespaces are left out."""
    declared = origin(die) or die
    around = declared.get_parent()
    if around is not None and around.tag in CLASSES and name_of(around):
        return f"{name_of(around).partition('<')[0]}::{name_of(die)}"
    return name_of(die)


def plain_name(name: str) -> str:
    """Cython's mangling is undone: the parts of the module's name come first, each behind its
    length."""
    mangled = CYTHON.match(name)
    if mangled is None:
        return name
    rest = name[mangled.end() :]
    while (part := re.match(r"\d+", rest)) is not None and len(rest) > part.end() + int(part[0]):
        rest = rest[part.end() + int(part[0]) :].removeprefix("_")
    return rest


def typed(die: Die) -> Die | None:
    """The type of a variable, a member or an array's elements, without names and qualifiers."""
    while die is not None and "DW_AT_type" not in die.attributes:
        die = origin(die)
    if die is None:
        return None
    return bare(die.get_DIE_from_attribute("DW_AT_type"))


def bare(die: Die | None) -> Die | None:
    while die is not None and die.tag in SAME_TYPE:
        die = die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None
    return die


def size_of(die: Die | None) -> int:
    """Bytes of an object of a type; 0 when they are unknown."""
    if die is None:
        return 0
    if "DW_AT_byte_size" in die.attributes:
        return int(die.attributes["DW_AT_byte_size"].value)
    if die.tag == "DW_TAG_array_type":
        total = size_of(typed(die))
        for count in dimensions(die):
            total *= count
        return total
    return 0


def member_paths(die: Die, offset: int) -> Iterator[str]:
    """The paths by the members of a class around ``offset``: of a union there may be many."""
    for child in die.iter_children():
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
            continue
        start = child.attributes.get("DW_AT_data_member_location")
        if start is None and die.tag != "DW_TAG_union_type":
            continue  # a static member
        start = start.value if start is not None else 0
        kind, name = typed(child), name_of(child)
        if not isinstance(start, int) or not 0 <= offset - start < size_of(kind):
            continue
        if child.tag == "DW_TAG_inheritance" or not name or name == "_M_elems":
            yield member_at(kind, offset - start)
        elif OF_LIBRARY.match(name):
            return
        else:
            yield f".{name}{member_at(kind, offset - start)}"


def dimensions(die: Die) -> list[int]:
    counts = []
    for child in die.iter_children():
        if child.tag == "DW_TAG_subrange_type":
            known = {
                name: child.attributes[name].value
                for name in ("DW_AT_count", "DW_AT_upper_bound")
                if name in child.attributes and isinstance(child.attributes[name].value, int)
            }
            counts.append(known.get("DW_AT_count", known.get("DW_AT_upper_bound", -1) + 1))
    return counts


def member_at(die: Die | None, offset: int) -> str:
    """The path to the member at ``offset`` of an object: ``.slots[1]``.

    It ends at types of libraries: "" at the beginning of one, ``+8`` behind it.
    """
    if die is not None and die.tag in CLASSES:
        paths = list(member_paths(die, offset))
        # Of a union the first member that has a part right there.
        return next((path for path in paths if "+" not in path), (*paths, distance_text(offset))[0])
    if die is not None and die.tag == "DW_TAG_array_type" and size_of(typed(die)):
        rest, index = offset, ""
        sizes = dimensions(die)
        for place in range(len(sizes)):
            each = size_of(typed(die))
            for count in sizes[place + 1 :]:
                each *= count
            if not each:
                break
            index += f"[{rest // each}]"
            rest %= each
        return index + member_at(typed(die), rest)
    return distance_text(offset)

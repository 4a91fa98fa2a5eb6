"""The rules of the house as functions from sources to complaints.

``Sources`` maps paths (``"pulsar_ml/errors.py"``) to texts, so that a rule can be shown a wrong
tree of one file. Each rule returns one line for each breach; ``test_architecture.py`` applies them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from tests import ROOT
from tests.house.source_imports import (
    cython_imports,
    import_cycle,
    imported_modules,
    imports,
    is_within,
)

Sources = Mapping[str, str]
Rule = Callable[[Sources], list[str]]

FOLDERS = ("pulsar_ml", "stress", "spark", "tests", "benchmarks", "docs", "tools")
CODE = (".py", ".pyx", ".pxd", ".pxi", ".pyi", ".h", ".c", ".sh")
STANDARD = ("libc", "cpython", "cython", "libcpp")

# Structures that are a part of another one, tested, measured and described with it.
PARTS = {
    "position": "a value of two numbers; property tests in tests/core/test_positions.py",
    "status": "the enum of answers",
    "monitor": "the lock of the removal queue",
    "map_pages": "the nodes of the position map",
    "map_directory": "the upper level of the position map",
    "receive_size": "the size of the next receive buffer; tested with receive_buffer",
    "eviction_thread": "the thread of the cache manager",
    "policy_intake": "what range caches know of the eviction policy",
    "policy_pass": "what all eviction policies have",
    "stash_queue": "an eviction policy; tested, measured and described with eviction_policy",
    "ledger_scan": "an eviction policy, likewise",
    "lru": "an eviction policy, likewise",
    "s3_fifo": "an eviction policy, likewise",
    "fewest_reads": "an eviction policy, likewise",
    "cached_state": "a view of the range cache, tested with it",
    "parsed_value": "a part of entry; tested and described with it",
    "payload": "the bytes of an entry, likewise",
    "ghost_list": "what s3_fifo remembers",
    "value_ring": "the lists of s3_fifo and the stash",
    "cursor_registry": "ids and counts of the cursors in either container",
    "active_groups": "the sorted list of the active cursors",
    "pending_table": "the lists of the pending reads",
    "position_blocks": "the sorted list of the acknowledgement state",
    "ack_ranges": "what the acknowledgement state holds",
    "ack_codec": "what of it is stored, and how",
    "entry_set": "the compressed sets of the delayed trackers; tested with delayed_tracker",
    "delay_bucket": "a span of delivery times of the delayed trackers",
    "delay_index": "the buckets of the delayed trackers, in order",
    "delayed_table": "the index and the timer of the delayed manager",
    "delayed_views": "the life of the delayed manager's topics and views",
}
SIBLINGS = (
    "pulsar_ml/operations/{}.pxd",
    "pulsar_ml/specs/{}.py",
    "pulsar_ml/suites/{}.py",
    "tests/structures/test_{}.py",
    "benchmarks/structures/{}.py",
    "docs/structures/{}.md",
)
# Names of structures that are also plain English; the harness may use these words.
GENERIC = {"entry", "position", "status", "monitor"}
HEADINGS = ["Origin", "Threads", "Invariants", "Ordering", "Reclamation", "Not promised"]
NO_HEADER = {"status": "an enum has no threads, order or memory"}

MOST_COLUMNS = 110
MOST_COLUMNS_OF_C = 120
MOST_LINES = 500
LONG_FILES = {
    "tests/engine/programs/bugs.h": "a list of small programs",
}
# A folder is seen at one glance; the aim is 15. Folders with one file for each structure or each
# mutated structure are exempt: a name leads from any of them to the others.
MOST_FILES = 16
FLAT_FOLDERS = (
    "pulsar_ml/structures", "pulsar_ml/operations", "pulsar_ml/specs", "pulsar_ml/suites",
    "stress/mutants/catalogue", "tests/structures", "benchmarks/structures",
)  # fmt: skip
# The bodies of native threads, the only structures that read the clock, and what else may not.
THREADS = ("pulsar_ml/structures/eviction_thread.pxd",)
TIMELESS = ("pulsar_ml.sync.clock", "pulsar_ml.sync.thread.thread_start")
# Sources of the compiler's atomic calls, and code under test that uses them as a stranger's does.
NATIVE_ATOMICS = (
    "pulsar_ml/sync/sync.h", "pulsar_ml/harness/engine/", "tests/memory_model/", "tests/engine/",
    "tests/third_party/", "tests/functions/", "tests/budgets/",
    "pulsar_ml/harness/building/checked.py",  # as text for code that Cython generates
)  # fmt: skip


def read_project() -> dict[str, str]:
    """Every source file of the checkout; nothing that a build or a run left there."""
    paths = [path for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".")]
    for folder in FOLDERS:
        paths += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths += [path for path in (ROOT / ".ci").glob("*") if path.is_file()]
    generated = {path.with_suffix(".c") for path in paths if path.suffix in {".pyx", ".py"}}
    return {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in sorted(set(paths) - generated)
        if path.suffix not in {".so", ".pyc", ".webp"} and "__pycache__" not in path.parts
    }


def under(
    sources: Sources, *folders: str, ends: tuple[str, ...] = CODE
) -> Iterator[tuple[str, str]]:
    for path, text in sources.items():
        if path.startswith(tuple(folder + "/" for folder in folders)) and path.endswith(ends):
            yield path, text


def structures(sources: Sources) -> list[str]:
    folder = "pulsar_ml/structures/"
    stems = [path[len(folder) : -4] for path, _ in under(sources, folder[:-1], ends=(".pxd",))]
    return [stem for stem in stems if stem != "__init__"]


# Imports -----------------------------------------------------------------------------


def forbid(sources: Sources, folders: tuple[str, ...], modules: tuple[str, ...]) -> list[str]:
    """Files of ``folders`` (or single paths) that import one of ``modules``."""
    return [
        f"{path} imports {module}"
        for path, text in sources.items()
        if path.endswith((".py", ".pyx", ".pxd", ".pxi", ".pyi"))
        and (path in folders or path.startswith(tuple(folder + "/" for folder in folders)))
        for module in sorted(imports(path, text))
        if is_within(module, modules)
    ]


def allow(sources: Sources, folders: tuple[str, ...], modules: tuple[str, ...]) -> list[str]:
    """Files of ``folders`` (or single paths) that import the project's modules but ``modules``."""
    return [
        f"{path} imports {module}"
        for path, text in sources.items()
        if path.endswith((".py", ".pyx", ".pxd", ".pxi", ".pyi"))
        and (path in folders or path.startswith(tuple(folder + "/" for folder in folders)))
        for module in sorted(imports(path, text))
        if is_within(
            module, ("pulsar_ml", "stress", "spark", "benchmarks", "tests", "tools", "include")
        )
        or module.startswith("include ")
        if not is_within(module, modules) and module not in {m.rpartition(".")[0] for m in modules}
    ]


def seam_stands_alone(sources: Sources) -> list[str]:
    return allow(sources, ("pulsar_ml/sync",), ("pulsar_ml.sync",))


def structures_look_down(sources: Sources) -> list[str]:
    found = allow(sources, ("pulsar_ml/structures",), ("pulsar_ml.sync", "pulsar_ml.structures"))
    for path, text in under(sources, "pulsar_ml/structures", ends=(".pxd",)):
        for module in sorted(cython_imports(text)):
            if not is_within(module, ("libc", "pulsar_ml")):
                found.append(f"{path} imports {module}")
            if is_within(module, TIMELESS) and path not in THREADS:
                found.append(
                    f"{path} imports {module}; time is an argument, and threads are made elsewhere"
                )
        if re.search(r"^\s*cdef extern", text, re.MULTILINE):
            found.append(f"{path} declares foreign code; that is for pulsar_ml/sync")
    return found


def structures_have_no_cycle(sources: Sources) -> list[str]:
    names = structures(sources)
    below = {
        name: {
            other for other in names
            if f"pulsar_ml.structures.{other}"
            in cython_imports(sources[f"pulsar_ml/structures/{name}.pxd"])
        }
        for name in names
    }  # fmt: skip
    return import_cycle(below)


def modules_have_no_cycle(sources: Sources) -> list[str]:
    """No module of pulsar_ml imports itself by way of others, not even for annotations."""
    modules = {
        path.rpartition(".")[0].removesuffix("/__init__").replace("/", "."): path
        for path, _ in under(sources, "pulsar_ml", ends=(".py", ".pyx"))
    }
    return import_cycle(
        {module: imported_modules(path, sources[path], modules) for module, path in modules.items()}
    )


def models_know_no_code(sources: Sources) -> list[str]:
    return allow(sources, ("pulsar_ml/specs",), ("pulsar_ml.specs",))


def product_knows_no_harness(sources: Sources) -> list[str]:
    face = tuple(path for path in sources if re.fullmatch(r"pulsar_ml/binding/.+\.pxi", path))
    product = face + tuple(
        path for path in sources
        if re.fullmatch(r"pulsar_ml/(terminal/)?[^/]+\.(py|pyx|pxd|pyi)", path)
    )  # fmt: skip
    known = (
        *("_core", "structures", "sync", "errors", "positions", "stats", "config", "cli"),
        *("input_files", "exit_codes", "extras", "terminal", "wording"),
    )
    parts = tuple("include " + path.removeprefix("pulsar_ml/") for path in face)
    found = allow(sources, product, (*(f"pulsar_ml.{name}" for name in known), *parts))
    for path in product:
        match = re.search(
            r"harness|mutant|PML_FAULTS|fail_allocation", sources[path], re.IGNORECASE
        )
        if match and path != "pulsar_ml/__init__.py":
            found.append(f"{path} says {match[0]!r}")
    return found


def managed_ledger_knows_the_core_only(sources: Sources) -> list[str]:
    known = ("managed_ledger", "_core", "errors", "positions")
    return allow(
        sources, ("pulsar_ml/managed_ledger",), tuple(f"pulsar_ml.{name}" for name in known)
    )


def harness_knows_no_layer_above_or_beside(sources: Sources) -> list[str]:
    return allow(
        sources,
        ("pulsar_ml/harness",),
        (
            *("pulsar_ml.harness", "pulsar_ml.sync", "pulsar_ml.errors", "pulsar_ml.input_files"),
            *("pulsar_ml.versioned_json", "pulsar_ml.extras", "pulsar_ml.wording"),
            # Parts of the engine's face.
            *("include names", "include code_places", "include heart", "include meetings"),
            *("include parts", "include changes"),
        ),
    )


def operations_know_structures_and_harness(sources: Sources) -> list[str]:
    known = ("operations", "structures", "sync", "harness")
    packages = tuple(f"pulsar_ml.{name}" for name in known)
    # The checked operations are the same file once more.
    return allow(sources, ("pulsar_ml/operations",), (*packages, "include _native"))


def campaign_knows_no_app(sources: Sources) -> list[str]:
    return forbid(sources, ("pulsar_ml",), ("stress", "spark", "benchmarks", "tools", "tests"))


def stress_knows_no_spark(sources: Sources) -> list[str]:
    return forbid(sources, ("stress",), ("spark", "benchmarks", "tests"))


def nobody_imports_tests(sources: Sources) -> list[str]:
    found = forbid(sources, ("stress", "spark", "tools"), ("tests",))
    # The engine's benchmarks measure the programs that its tests are about.
    engine = tuple(
        f"benchmarks/{name}.py"
        for name in ("engine", "searches/classes", "peers/loom", "peers/genmc")
    )
    others = {path: text for path, text in sources.items() if path not in engine}
    return found + forbid(others, ("benchmarks",), ("tests",))


# Words -------------------------------------------------------------------------------------------


def harness_names_no_structure(sources: Sources) -> list[str]:
    names = set(structures(sources)) - GENERIC
    forms = set(names)
    for name in names:
        forms |= {name.title().replace("_", ""), name.replace("_", " ")}
    pattern = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(sorted(forms)) + r")(?![A-Za-z0-9])")
    return [
        f"{path}:{number} says {match[0]!r}"
        for path, text in under(sources, "pulsar_ml/harness")
        for number, line in enumerate(text.splitlines(), 1)
        if names and (match := pattern.search(line))
    ]


def search(sources: Sources, pattern: str, flags: int = 0) -> list[str]:
    return [
        f"{path}:{number}: {match[0]}"
        for path, text in sources.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (match := re.search(pattern, line, flags))
    ]


# Spelled so that the rules do not find themselves.
ATOMICS = "__ato[m]ic_|__sy[n]c_|_Ato[m]ic\\b|stdato[m]ic|libcpp.ato[m]ic"
ASSEMBLY = r"\b__as[m]__\b|__builtin_ia[3]2_"
UNFINISHED = r"\b(TO[D]O|FIX[M]E|XX[X]|HA[C]K|WI[P])\b"
LEFT_OUT = r"mark\.sk[i]p|mark\.xf[a]il|pytest\.sk[i]p|\bsle[e]p\("
OUTSIDE = r"(?<!\w)sha[r]ed/|/wo[r]k/|/tmp/ve[n]v"


def atomics_are_in_one_header(sources: Sources) -> list[str]:
    others = {path: text for path, text in sources.items() if not path.startswith(NATIVE_ATOMICS)}
    return search({p: t for p, t in others.items() if p.endswith(CODE)}, f"{ATOMICS}|{ASSEMBLY}")


def threads_are_made_in_the_harness(sources: Sources) -> list[str]:
    places = ("pulsar_ml/sync", "pulsar_ml/structures", "pulsar_ml/operations", "pulsar_ml/specs")
    seam = "pulsar_ml/sync/thread.h"
    others = {path: text for path, text in under(sources, *places) if path != seam}
    found = search(others, r"\bpthread_|\bimport threading\b|\bsetcontext\b")
    clocks = {
        p: t for p, t in others.items() if not p.startswith("pulsar_ml/sync/") and p not in THREADS
    }
    return found + search(
        clocks, r"\bclock_gettime\b|\bmonotonic_ns\b|\bimport (time|random)\b|\brand\("
    )


def directives_are_in_setup(sources: Sources) -> list[str]:
    strangers = ("tests/engine/", "tests/third_party/", "tests/functions/")
    cython = {
        path: text
        for path, text in sources.items()
        if path.endswith((".pyx", ".pxd", ".pxi")) and not path.startswith(strangers)
    }
    return search(cython, r"^\s*#\s*(cython|distutils):")


def nothing_is_unfinished(sources: Sources) -> list[str]:
    return search(sources, UNFINISHED) + search(dict(under(sources, "tests")), LEFT_OUT)


def nothing_outside_is_mentioned(sources: Sources) -> list[str]:
    return search(sources, OUTSIDE)


# Shape -------------------------------------------------------------------------------------------


def lines_fit(sources: Sources) -> list[str]:
    return [
        f"{path}:{number} has {len(line)} columns"
        for path, text in sources.items()
        if path.endswith(CODE)
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > (MOST_COLUMNS_OF_C if path.endswith((".c", ".h")) else MOST_COLUMNS)
    ]


def files_are_of_one_idea(sources: Sources) -> list[str]:
    return [
        f"{path} has {text.count(chr(10))} lines"
        for path, text in sources.items()
        if path.endswith(CODE) and path not in LONG_FILES and text.count("\n") > MOST_LINES
    ]


def files_of_folders(sources: Sources) -> Counter[str]:
    """The number of code files that lie directly in each folder."""
    return Counter(path.rpartition("/")[0] for path in sources if path.endswith(CODE))


def folders_are_rooms(sources: Sources) -> list[str]:
    return [
        f"{folder} has {count} files of code; the most is {MOST_FILES}"
        for folder, count in sorted(files_of_folders(sources).items())
        if count > MOST_FILES and folder not in FLAT_FOLDERS
    ]


def annotations_are_postponed(sources: Sources) -> list[str]:
    return [
        f"{path} lacks from __future__ import annotations"
        for path, text in sources.items()
        if path.endswith(".py")
        and text.strip()
        and "from __future__ import annotations" not in text
        if any(not isinstance(node, ast.Expr) for node in ast.parse(text).body)
    ]


def headers_have_their_headings(sources: Sources) -> list[str]:
    found = []
    for name in structures(sources):
        if name in NO_HEADER:
            continue
        comment = re.match(r"(#.*\n)*", sources[f"pulsar_ml/structures/{name}.pxd"])
        header = comment[0] if comment else ""
        found_at = re.finditer(r"^# (?:([A-Z][a-z]+) {2,}|(Not promised) )\S", header, re.MULTILINE)
        present = [match[1] or match[2] for match in found_at]
        if present != HEADINGS:
            found.append(f"{name}: the headings are {present}")
        if not re.match(r"# [A-Z][^.]*\.\n|# [A-Z].*\n(# \S.*\n)*?#.*\.\n#\n", header):
            found.append(f"{name}: the header does not begin with a sentence and an empty line")
    return found


def siblings_are_complete(sources: Sources) -> list[str]:
    return [
        f"{name} lacks {sibling.format(name)}"
        for name in structures(sources)
        if name not in PARTS
        for sibling in SIBLINGS
        if sibling.format(name) not in sources
    ]


def lists_are_current(sources: Sources) -> list[str]:
    """The lists above name what is there."""
    names = set(structures(sources))
    found = [
        f"{name} is no structure"
        for name in sorted((set(PARTS) | GENERIC | set(NO_HEADER)) - names)
    ]
    found += [f"{path} is no file" for path in LONG_FILES if path not in sources]
    counts = files_of_folders(sources)
    return found + [
        f"{folder} has {counts[folder]} files of code and needs no exemption"
        for folder in FLAT_FOLDERS
        if counts[folder] <= MOST_FILES
    ]


def packages_can_be_cimported(sources: Sources) -> list[str]:
    folders = {path.rpartition("/")[0] for path, _ in under(sources, "pulsar_ml", ends=(".pxd",))}
    return [
        f"{folder} lacks {name}"
        for folder in sorted(folders)
        for name in ("__init__.py", "__init__.pxd")
        if f"{folder}/{name}" not in sources
    ]

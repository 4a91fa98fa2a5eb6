"""The rules of the house hold, and each rule notices a breach."""

from __future__ import annotations

import pytest

from tests.house import architecture_rules as rules
from tests.house import exercised_rules as exercised
from tests.house import face_rules as face
from tests.house import layer_rules as layers
from tests.house import native_rules as native
from tests.house.architecture_rules import HEADINGS, PARTS, Rule, Sources

HEADER = "# What it is.\n#\n" + "".join(f"# {heading:12} text\n" for heading in HEADINGS)
STRUCTURE = "pulsar_ml/structures/thing.pxd"
CELLS = (
    "cdef struct Thing:\n    pml_i64 cell\n    int plain\n\n\n"
    "cdef inline void f(Thing* a, Thing* b) noexcept nogil:\n"
)

# A rule, and small trees each of which breaks it.
BREACHES: list[tuple[Rule, list[Sources]]] = [
    (face.times_are_whole_numbers_with_a_unit, [
        {face.STUB: "class A:\n    def f(self, *, timeout_ms: float = 5) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, tick_time_millis: int) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, idle_seconds: SupportsIndex) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, *, now: SupportsIndex | None = None) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, deliver_at: int, /) -> None: ...\n"},
        {face.STUB: "class A:\n    @property\n    def deadline(self) -> int | None: ...\n"},
        {face.STUB: "class A(NamedTuple):\n    timestamp: int\n"},
        {face.STUB: "class A(NamedTuple):\n    timestamp_ns: float\n"},
    ]),
    (face.a_unit_says_which_clock, [
        {face.STUB: "class A:\n    def f(self, *, now_ms: int) -> None: ...\n"
                    "    def g(self, *, now_ns: int) -> None: ...\n"},
        {face.STUB: "class A(NamedTuple):\n    timestamp_ns: int\n    deliver_at_ms: int\n"},
        {face.STUB: "class A:\n    def f(self, timeout_ns: int) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, now_ms: int) -> None: ...\n"
                    "    def next_expiry_ns(self) -> int | None: ...\n"},
    ]),
    (face.positions_have_one_name, [
        {face.STUB: "class A:\n    def f(self, at: _At) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, before: _At | None = None) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, places: _Positions) -> None: ...\n"},
        {face.STUB: "class A:\n    def f(self, positions: Iterable[_At]) -> None: ...\n"},
    ]),
    (rules.seam_stands_alone, [
        {"pulsar_ml/sync/wait.pxd": "from pulsar_ml.structures.pool cimport take\n"},
        {"pulsar_ml/sync/__init__.py": "import pulsar_ml.errors\n"},
    ]),
    (rules.structures_look_down, [
        {STRUCTURE: "from pulsar_ml._core cimport Entry\n"},
        {STRUCTURE: "from pulsar_ml.harness.subjects.subject cimport PmlSubject\n"},
        {STRUCTURE: "from pulsar_ml.harness cimport subject\n"},
        {STRUCTURE: "cimport pulsar_ml.operations.entry\n"},
        {STRUCTURE: "from cpython.ref cimport Py_INCREF\n"},
        {STRUCTURE: "include \"other.pxi\"\n"},
        {STRUCTURE: "from pulsar_ml.sync.clock cimport monotonic_ns\n"},
        {STRUCTURE: "from pulsar_ml.sync.thread cimport thread_start\n"},
        {STRUCTURE: "cdef extern from \"own.h\":\n    int f() noexcept\n"},
    ]),
    (rules.structures_have_no_cycle, [
        {"pulsar_ml/structures/a.pxd": "from pulsar_ml.structures.b cimport f\n",
         "pulsar_ml/structures/b.pxd": "from pulsar_ml.structures.a cimport g\n"},
        {"pulsar_ml/structures/a.pxd": "cimport pulsar_ml.structures.a\n"},
    ]),
    (rules.modules_have_no_cycle, [
        {"pulsar_ml/config/a.py": "from pulsar_ml.config.b import f\n",
         "pulsar_ml/config/b.py": "if TYPE_CHECKING:\n    from pulsar_ml.config import a\n"},
        {"pulsar_ml/config/a.py": "from pulsar_ml.stats import f\n",
         "pulsar_ml/stats.py": "def f():\n    import pulsar_ml.metrics\n",
         "pulsar_ml/metrics/__init__.py": "from pulsar_ml.config.a import g\n"},
        {"pulsar_ml/harness/a.pyx": "from pulsar_ml.harness.b import f\n",
         "pulsar_ml/harness/b.py": "from pulsar_ml.harness.a import g\n"},
        {"pulsar_ml/stats.py": "from pulsar_ml.stats import f\n"},
    ]),
    (rules.models_know_no_code, [
        {"pulsar_ml/specs/thing.py": "from pulsar_ml import Entry\n"},
        {"pulsar_ml/specs/thing.py": "def f():\n    import pulsar_ml._core\n"},
        {"pulsar_ml/specs/thing.py": "from ..operations import _native\n"},
        {"pulsar_ml/specs/thing.py": "from pulsar_ml.suites import registry\n"},
    ]),
    (rules.product_knows_no_harness, [
        {"pulsar_ml/_core.pyx": "from pulsar_ml.harness.subjects.subject cimport Subject\n"},
        {"pulsar_ml/_core.pyx": "from pulsar_ml.operations import _native\n"},
        {"pulsar_ml/__init__.py": "from pulsar_ml.campaign.trial.trial import run_trial\n"},
        {"pulsar_ml/_core.pyx": "if mutant(3):\n    pass\n"},
        {"pulsar_ml/_core.pyx": "include \"operations/_native.pyx\"\n"},
        {"pulsar_ml/binding/entry.pxi": "from pulsar_ml.operations import _native\n"},
    ]),
    (rules.managed_ledger_knows_the_core_only, [
        {"pulsar_ml/managed_ledger/ledger.py": "from pulsar_ml.harness.subjects.subject import Subject\n"},
        {"pulsar_ml/managed_ledger/ledger.py": "from pulsar_ml.operations import _native\n"},
        {"pulsar_ml/managed_ledger/ledger.py": "def f():\n    import stress.mutants\n"},
    ]),
    (rules.harness_knows_no_layer_above_or_beside, [
        {"pulsar_ml/harness/subjects/program.py": "from pulsar_ml.campaign import suite\n"},
        {"pulsar_ml/harness/subjects/threads.pyx":
         "from pulsar_ml.structures.refcount cimport refcount_retain\n"},
        {"pulsar_ml/harness/subjects/program.py": "import pulsar_ml._core\n"},
    ]),
    (rules.operations_know_structures_and_harness, [
        {"pulsar_ml/operations/thing.pxd": "from pulsar_ml._core cimport Entry\n"},
        {"pulsar_ml/operations/_native.pyx": "from pulsar_ml.specs import thing\n"},
    ]),
    (rules.campaign_knows_no_app, [
        {"pulsar_ml/campaign/plan/plan.py": "from stress.invariants import DATA\n"},
        {"pulsar_ml/campaign/plan/plan.py": "import spark.sweep\n"},
        {"pulsar_ml/harness/x.pyx": "import tests.toys\n"},
    ]),
    (layers.layers_look_down, [
        {"pulsar_ml/harness/x.py": "from pulsar_ml.campaign.plan import plan\n"},
        {"pulsar_ml/campaign/x.py": "def f():\n    import pulsar_ml.distributed.runner\n"},
        {"pulsar_ml/distributed/x.py": "from pulsar_ml.sweep import run\n"},
        {"pulsar_ml/sweep/x.py": "from pulsar_ml.cli import main\n"},
        {"pulsar_ml/report/x.py": "from pulsar_ml.cli.output import console\n"},
    ]),
    (layers.campaign_parses_no_options, [
        {"pulsar_ml/campaign/local/x.py": "import click\n"},
        {"pulsar_ml/campaign/local/x.py": "from click.testing import CliRunner\n"},
    ]),
    (layers.suites_know_the_campaign_only, [
        {"pulsar_ml/suites/x.py": "from pulsar_ml.harness.engine import Explorer\n"},
        {"pulsar_ml/suites/x.py": "from pulsar_ml.structures import entry\n"},
    ]),
    (layers.pyspark_is_imported_late, [
        {"pulsar_ml/distributed/x.py": "from pyspark.sql import SparkSession\n"},
        {"pulsar_ml/distributed/x.py": "try:\n    import py4j\nexcept ImportError:\n    pass\n"},
        {"pulsar_ml/distributed/x.py": "class A:\n    import pyspark\n"},
    ]),
    (rules.stress_knows_no_spark, [{"stress/invariants.py": "def f():\n    from spark import sweep\n"}]),
    (rules.nobody_imports_tests, [{"spark/sweep.py": "from tests.toys import toy\n"}]),
    (layers.pyspark_is_for_spark, [
        {"pulsar_ml/campaign/run/runner.py": "from pyspark.sql import SparkSession\n"},
        {"pulsar_ml/cli/stress.py": "def f():\n    import pyspark\n"},
        {"tests/campaign/test_plan.py": "import pyspark.sql\n"},
    ]),
    (rules.harness_names_no_structure, [
        {STRUCTURE: "", "pulsar_ml/harness/subjects/program.py": "# for the thing alone\n"},
        {"pulsar_ml/structures/range_cache.pxd": "", "pulsar_ml/harness/a.py": "x = RangeCache()\n"},
        {"pulsar_ml/structures/range_cache.pxd": "", "pulsar_ml/harness/a.py": "# a range cache\n"},
        {"pulsar_ml/structures/range_cache.pxd": "", "pulsar_ml/harness/a.h": "int range_cache_get();\n"},
    ]),
    (rules.atomics_are_in_one_header, [
        {STRUCTURE: "x = __" + "atomic_load_n(p, 0)\n"},
        {"pulsar_ml/harness/subject.h": "__" + "sync_synchronize();\n"},
        {"pulsar_ml/harness/subjects/threads.pyx": "from libcpp." + "atomic cimport " + "atomic\n"},
        {"benchmarks/loops/loops.pyx": "__" + "asm__ volatile(\"\");\n"},
    ]),
    (rules.threads_are_made_in_the_harness, [
        {STRUCTURE: "pthread_create(&t, NULL, f, NULL)\n"},
        {"pulsar_ml/sync/wait.pxd": "pthread_create(&t, NULL, f, NULL)\n"},
        {"pulsar_ml/operations/thing.pxd": "now = monotonic_ns()\n"},
        {"pulsar_ml/specs/thing.py": "import random\n"},
    ]),
    (rules.directives_are_in_setup, [{STRUCTURE: "# cython: boundscheck=False\n"}]),
    (rules.nothing_is_unfinished, [
        {"pulsar_ml/cli/stress.py": "# TO" + "DO later\n"},
        {"docs/index.md": "FIX" + "ME\n"},
        {"tests/test_x.py": "@pytest.mark.sk" + "ip\ndef test(): ...\n"},
        {"tests/test_x.py": "time.sle" + "ep(1)\n"},
    ]),
    (rules.nothing_outside_is_mentioned, [
        {"docs/index.md": "see ../sha" + "red/plan.md\n"},
        {"README.md": "cd /wo" + "rk/main\n"},
    ]),
    (rules.lines_fit, [{"pulsar_ml/cli/stress.py": "x = 1" + " " * 110 + "\n"}]),
    (rules.files_are_of_one_idea, [{"pulsar_ml/cli/stress.py": "x = 1\n" * 501}]),
    (rules.annotations_are_postponed, [{"pulsar_ml/cli/stress.py": '"""Text."""\n\nimport os\n'}]),
    (rules.headers_have_their_headings, [
        {STRUCTURE: "cdef int f() noexcept nogil:\n    return 1\n"},
        {STRUCTURE: HEADER.replace("Threads", "Readers")},
        {STRUCTURE: HEADER.replace("# Not promised text\n", "")},
        {STRUCTURE: HEADER.replace("# Origin       text\n", "") + "# Origin       text\n"},
        {STRUCTURE: HEADER.replace("# What it is.\n#\n", "")},
    ]),
    (rules.folders_are_rooms, [
        {f"pulsar_ml/extra/part_{number}.py": "" for number in range(17)},
        {f"tests/extra/part_{number}.pyx": "" for number in range(17)},
    ]),
    (rules.siblings_are_complete, [{STRUCTURE: HEADER}]),
    (rules.lists_are_current, [{STRUCTURE: HEADER}]),
    (rules.packages_can_be_cimported, [{"pulsar_ml/extra/thing.pxd": "", "pulsar_ml/extra/__init__.py": ""}]),
    (native.native_functions_are_noexcept_nogil, [
        {STRUCTURE: "cdef inline void f() nogil:\n    pass\n"},
        {STRUCTURE: "cdef inline int f(int a,\n                  int b) except -1:\n    return a\n"},
        {STRUCTURE: "cdef inline int f() noexcept:\n    return 1\n"},
        {STRUCTURE: "cdef int counter = 0\n"},
        {STRUCTURE: "ctypedef void (*F)(int a)\n"},
        {"pulsar_ml/sync/x.pxd": 'cdef extern from "sync.h" nogil:\n    int f(int a)\n'},
        {"pulsar_ml/_core.pyx": "cdef int f() nogil:\n    return 1\n"},
    ]),
    (exercised.native_functions_are_exercised, [
        {STRUCTURE: "cdef inline void f() noexcept nogil:\n    pass\n"},
        {STRUCTURE: "cdef inline void f() noexcept nogil:\n    f()\n",
         "pulsar_ml/operations/thing.pxd": "from pulsar_ml.structures.thing cimport f\n\n# f\n"},
    ]),
    (native.native_code_raises_nothing, [
        {STRUCTURE: "cdef inline void f() noexcept nogil:\n    raise ValueError\n"},
        {STRUCTURE: "cdef inline void f() noexcept nogil:\n    with gil:\n        pass\n"},
        {STRUCTURE: "cdef inline void f(object x) noexcept nogil:\n    pass\n"},
        {"pulsar_ml/operations/thing.pxd": "import os\n"},
    ]),
    (native.cells_are_not_copied, [
        {STRUCTURE: CELLS + "    a.cell = b.cell\n"},
        {STRUCTURE: CELLS + "    a[0] = b[0]\n"},
        {STRUCTURE: CELLS + "    cdef pml_i64 copy = a.cell\n"},
        {STRUCTURE: CELLS + "    cdef Thing copy = b[0]\n"},
        {STRUCTURE: CELLS.replace("Thing* b", "Thing b") + "    return\n"},
        {STRUCTURE: CELLS.replace("void f", "Thing f") + "    return a[0]\n"},
        {STRUCTURE: CELLS + "    pass\n\n\ncdef struct Outer:\n    Thing inner\n\n\n"
         "cdef inline void g(Outer* a, Outer* b) noexcept nogil:\n    a.inner = b.inner\n"},
    ]),
    (native.native_calls_pass_the_gate, [
        {"pulsar_ml/binding/manager.pxi": "def f(self):\n    with nogil:\n        cache_manager_run(m)\n"},
        {"pulsar_ml/binding/manager.pxi":
            "def f(self):\n    with nogil:\n        native_enter()\n        cache_manager_run(m)\n"},
        {"pulsar_ml/binding/manager.pxi":
            "def f(self):\n    with nogil:\n        native_enter()\n        run(m)\n"
            "        native_leave()\n        run(m)\n"},
    ]),
    (native.long_calls_release_the_gil, [
        {"pulsar_ml/_core.pyx": "def f(self):\n    removed = cache_manager_remove(m, c)\n"},
        {"pulsar_ml/_core.pyx": "def f(self):\n    with nogil:\n        pass\n    cache_manager_run(m, r)\n"},
        {"pulsar_ml/binding/manager.pxi": "def f(self):\n    removed = cache_manager_remove(m, c)\n"},
    ]),
]  # fmt: skip


@pytest.fixture(scope="module")
def project() -> Sources:
    return rules.read_project()


@pytest.mark.parametrize("rule", [rule for rule, _ in BREACHES], ids=lambda rule: rule.__name__)
def test_rule(rule: Rule, project: Sources) -> None:
    complaints = rule(project)
    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize(
    ("rule", "breach"),
    [
        pytest.param(rule, breach, id=f"{rule.__name__}-{number}")
        for rule, breaches in BREACHES
        for number, breach in enumerate(breaches)
    ],
)
def test_a_breach_is_noticed(rule: Rule, breach: Sources) -> None:
    assert rule(breach)


def test_every_rule_is_applied() -> None:
    helpers = {
        "read_project", "under", "structures", "forbid", "allow", "search", "strip", "statements",
        "structs", "holds_cells", "kind_of", "at_import", "files_of_folders", "names", "annotation",
        "Name", "functions", "words",
    }  # fmt: skip
    defined = {
        name
        for module in (rules, layers, native, face, exercised)
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
    }
    assert defined - helpers == {rule.__name__ for rule, _ in BREACHES}


def test_a_right_structure_breaks_no_rule_of_its_own() -> None:
    """The rules accept what they should: a breach found everywhere would prove nothing."""
    right = {
        STRUCTURE: HEADER
        + "from libc.stdint cimport int64_t\nfrom pulsar_ml.structures.part cimport part_get\n"
        + "from pulsar_ml.sync.atomics cimport (\n    i64_load_relaxed, pml_i64,\n)\n\n\n"
        + CELLS
        + "    cdef int64_t seen = i64_load_relaxed(&a.cell)\n"
        + "    a.plain = b.plain\n    b.plain = <int>seen\n",
        "pulsar_ml/structures/part.pxd": HEADER,
    }
    apart = {
        rules.siblings_are_complete, rules.lists_are_current, rules.packages_can_be_cimported,
        exercised.native_functions_are_exercised,
    }  # fmt: skip
    assert {
        rule.__name__: rule(right) for rule, _ in BREACHES if rule not in apart and rule(right)
    } == {}


def test_the_project_is_read_whole(project: Sources) -> None:
    for path in ("setup.py", "Makefile", "pulsar_ml/sync/sync.h", "pulsar_ml/_core.pyx", ".ci/run"):
        assert path in project
    assert not [path for path in project if path.endswith((".so", "_core.c"))]


def test_every_part_has_its_reason() -> None:
    assert all(len(reason) > 10 for reason in PARTS.values())


def test_names_of_the_face_that_are_right() -> None:
    right = (
        "class A(NamedTuple):\n    timestamp_ns: int\n    age: str\n\n"
        "class B:\n    def reset_tick_time(self, tick_time_ms: SupportsIndex) -> None: ...\n"
        "    def f(self, position: _At, *, now_ns: int | None = None) -> bool: ...\n"
        "\nclass C:\n"
        "    def g(self, positions: _Positions, deliver_at_ms: _Numbers) -> int: ...\n"
    )
    assert len(list(face.names({face.STUB: right}))) == 8
    assert face.times_are_whole_numbers_with_a_unit({face.STUB: right}) == []
    assert face.a_unit_says_which_clock({face.STUB: right}) == []
    assert face.positions_have_one_name({face.STUB: right}) == []

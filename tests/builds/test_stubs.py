"""The stubs say what the compiled modules do."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pulsar_ml
from pulsar_ml import (
    AckState,
    ActiveManagedCursorContainer,
    EntryCacheManager,
    InflightReadsLimiter,
    InMemoryDelayedDeliveryTrackerFactory,
    ManagedCursorContainer,
    PendingReadsManager,
    RangeCache,
    ReceiveBufferSize,
)
from pulsar_ml.harness.subjects.subject import Instance, Subject

PACKAGE = Path(pulsar_ml.__file__).parent
ALLOWLIST = Path(__file__).with_name("stubtest_allowlist.txt")
FACTORY, VIEW = "InMemoryDelayedDeliveryTrackerFactory", "InMemoryTopicDelayedDeliveryTrackerView"
DELAYED: dict[tuple[str, str], dict[str, Any]] = {
    (FACTORY, "__new__"): {"tick_time_ms": 1, "strict": True, "fixed_delay_detection_lookahead": 0,
                           "prune_interval_ms": 0, "prune_eligible_ratio": 0.5,
                           "topic_manager_idle_ms": 0},
    (FACTORY, "new_tracker"): {"topic": "a", "trigger": None, "subscription": None,
                               "may_dispatch": None},
    (FACTORY, "get"): {"topic": "a", "subscription": "b"},
    (FACTORY, "expire"): {"now_ms": 0},
    (VIEW, "add_message"): {"position": (1, 1), "deliver_at_ms": 9, "now_ms": 0},
    (VIEW, "add_messages"): {"positions": [(1, 1)], "deliver_at_ms": [9], "now_ms": 0},
    (VIEW, "get_scheduled_messages"): {"max_messages": 1, "now_ms": 0},
    (VIEW, "has_message_available"): {"now_ms": 0},
    (VIEW, "should_pause_all_deliveries"): {"now_ms": 0},
    (VIEW, "update_mark_delete_position"): {"position": (1, 1), "now_ms": 0},
    (VIEW, "reset_tick_time"): {"tick_time_ms": 1},
    (VIEW, "fire"): {"now_ms": 0},
    (VIEW, "resume"): {"now_ms": 0},
    (VIEW, "close"): {"now_ms": 0},
}  # fmt: skip
ACK_LIMITS = {
    "max_bytes": 2048,
    "max_ranges": 5,
    "max_batches": 6,
    "max_ranges_in_metadata_store": 7,
    "pause_dispatch": True,
}
COMPILED = sorted(
    ".".join(source.relative_to(PACKAGE.parent).with_suffix("").parts)
    for source in PACKAGE.rglob("*.pyx")
)


def stubtest(
    modules: list[str], *options: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if path is not None:
        environment |= {"MYPYPATH": str(path), "PYTHONPATH": str(path)}
    return subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *options, *modules],
        cwd=path or PACKAGE.parent, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_every_compiled_module_has_a_stub() -> None:
    assert "pulsar_ml._core" in COMPILED
    assert [name for name in COMPILED if not stub_of(name).exists()] == []


def test_the_stubs_agree_with_the_compiled_modules() -> None:
    # Some lines are about one version of Python only.
    done = stubtest(COMPILED, "--allowlist", str(ALLOWLIST), "--ignore-unused-allowlist")
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubtest_sees_a_wrong_stub(tmp_path: Path) -> None:
    (tmp_path / "thing.py").write_text("def known(a: int) -> int: return a\n")
    (tmp_path / "thing.pyi").write_text(
        "def known(b: int) -> int: ...\ndef unknown() -> None: ...\n"
    )
    done = stubtest(["thing"], path=tmp_path)
    assert done.returncode == 1
    assert "thing.unknown is not present at runtime" in done.stdout
    assert 'stub parameter "b" differs from runtime parameter "a"' in done.stdout


def test_every_line_of_the_allowlist_has_its_reason_above() -> None:
    lines = ALLOWLIST.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert all(line.strip() for line in lines)


def test_the_stub_of_the_core_type_checks_real_use(tmp_path: Path) -> None:
    """The README's calls are accepted, and misuse is refused."""
    good = tmp_path / "good.py"
    good.write_text(
        "from pulsar_ml import EntryCacheManager, Position\n"
        "with EntryCacheManager(max_requeue_count=3) as manager:\n"
        "    cache = manager.range_cache('a')\n"
        "    stored: bool = cache.put(Position(1, 2), b'x', expected_reads=1)\n"
        "    entry = cache.get((1, 2))\n"
        "    if entry is not None:\n"
        "        with entry:\n"
        "            view: memoryview = memoryview(entry)\n"
        "            data: bytes = bytes(entry)\n"
        "    freed: int = manager.evict_bytes(1).bytes\n"
        "    for each in cache.iterate((0, 0), (9, 9)):\n"
        "        each.release()\n"
    )
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from pulsar_ml import Entry, EntryCacheManager\n"
        "manager = EntryCacheManager(3)\n"
        "manager.range_cache('a').get((1, 2)).release()\n"
        "manager.entry((1, 2), 'text')\n"
        "class Mine(Entry): ...\n"
    )
    for source, lines in ((good, []), (bad, [2, 3, 4, 5])):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(source)],
            cwd=PACKAGE.parent, capture_output=True, text=True,
        )  # fmt: skip
        found = [
            line for line in done.stdout.splitlines() if f"{source}:" in line and " error: " in line
        ]
        assert [int(line.split(":")[1]) for line in found] == lines, done.stdout + done.stderr


# Parameter names, which stubtest does not compare for constructors -------------------------------


def stub_of(module: str) -> Path:
    return PACKAGE.parent / (module.replace(".", "/") + ".pyi")


def keywords(module: str, owner: str, function: str) -> set[str]:
    """Names of the parameters that the stub lets a caller pass by keyword."""
    tree = ast.parse(stub_of(module).read_text())
    body = next(
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner
    )
    found = next(
        node for node in body if isinstance(node, ast.FunctionDef) and node.name == function
    )
    names = {argument.arg for argument in [*found.args.args, *found.args.kwonlyargs]}
    return names - {"self", "cls"}


SETTINGS = {
    "max_size": 2**20, "watermark": 0.8, "eviction_interval_ms": 5, "time_threshold_ms": 100,
    "time_threshold_max_ms": 200,
    "max_requeue_count": 3, "extend_ttl_of_recently_accessed": False,
}  # fmt: skip


def test_every_method_of_the_core_takes_its_parameters_by_name() -> None:
    arguments: dict[tuple[str, str], dict[str, Any]] = {
        ("EntryCacheManager", "__new__"): SETTINGS
        | {"policy": "released_queue", "copy_entries": True, "start": False, "clock": None},
        ("EntryCacheManager", "configure"): SETTINGS,
        ("EntryCacheManager", "periodic_eviction"): {"now_ns": 6},
        ("EntryCacheManager", "evict_to_watermark"): {"now_ns": 6},
        ("RangeCache", "count_misses"): {"entries": 1, "bytes": 5},
        ("EntryCacheManager", "entry"): {"position": (1, 1), "data": b"x", "expected_reads": 1},
        ("EntryCacheManager", "receive_buffer"): {"capacity": 100},
        ("ReceiveBuffer", "write"): {"data": b"abc"},
        ("ReceiveBuffer", "slice"): {"offset": 1, "length": 2},
        ("ReceiveBufferSize", "__new__"): {"minimum": 16, "initial": 16, "maximum": 16},
        ("ReceiveBufferSize", "record"): {"read": 16},
        ("EntryCacheManager", "range_cache"): {"name": "a"},
        ("RangeCache", "put"): {"position": (1, 2), "value": b"x", "expected_reads": 1, "timestamp_ns": 5},
        ("RangeCache", "get"): {"position": (1, 2)},
        ("RangeCache", "put_all"): {
            "positions": [(1, 2)],
            "values": [b"x"],
            "expected_reads": 1,
            "timestamp_ns": 5,
        },
        ("RangeCache", "get_all"): {"positions": [(1, 2)]},
        ("RangeCache", "remove_all"): {"positions": [(1, 2)]},
        ("RangeCache", "iterate_cached"): {"first": (1, 1), "last": (1, 3)},
        ("Entry", "copy"): {"counts_read": False},
        ("Entry", "release"): {"delivered": False},
        ("RangeCache", "get_range"): {"first": (1, 1), "last": (1, 3)},
        ("RangeCache", "iterate"): {"first": (1, 1), "last": (1, 3)},
        ("RangeCache", "visit_range"): {"first": (1, 1), "last": (1, 3), "visitor": lambda entry: None},
        ("RangeCache", "invalidate_entries"): {"position": (1, 3)},
        ("RangeCache", "remove_range"): {"first": (1, 1), "last": (1, 3), "last_inclusive": False},
        ("EntryCacheManager", "evict_entries_before"): {"timestamp_ns": 5, "now_ns": 6},
        ("EntryCacheManager", "evict_bytes"): {"size_to_free": 5, "now_ns": 6},
        ("EntryCacheManager", "get"): {"name": "a"},
        ("EntryCacheManager", "remove_range_cache"): {"name": "a"},
        ("ActiveManagedCursorContainer", "__new__"): {
            "continue_caching_added_entries_after_last_active_cursor_leaves_ms": 5, "now_ns": 6},
        ("_NamedCursors", "add"): {"name": "c", "position": (1, 1), "durable": False},
        ("_NamedCursors", "update_cursors"): {"names": ["c"], "positions": [(1, 1)]},
        ("_NamedCursors", "get"): {"name": "c"},
        ("ActiveManagedCursorContainer", "update_cursor"): {"name": "c", "position": (1, 2)},
        ("ActiveManagedCursorContainer", "number_of_cursors_at_same_position_or_before"): {"name": "c"},
        ("ActiveManagedCursorContainer", "number_of_cursors_at_position_or_before"): {
            "name": "c", "position": (1, 2)},
        ("ActiveManagedCursorContainer", "should_cache_added_entry"): {"now_ns": 5},
        ("ActiveManagedCursorContainer", "remove_cursor"): {"name": "c", "now_ns": 5},
        ("ManagedCursorContainer", "update_cursor"): {"name": "c", "position": (1, 2)},
        ("ManagedCursorContainer", "remove_cursor"): {"name": "c"},
        ("InflightReadsLimiter", "__new__"): {
            "max_bytes": 5, "acquire_timeout_ms": 6, "acquire_queue_size": 7},
        ("InflightReadsLimiter", "acquire"): {"permits": 1, "callback": lambda permits: None, "now_ns": 5},
        ("InflightReadsLimiter", "expire"): {"now_ns": 6},
        ("Permits", "share"): {"entries": []},
        ("PendingReadsManager", "__new__"): {
            "manager": None, "start_read": lambda *read: None, "read_timeout_ms": 5},
        ("PendingReadsManager", "read"): {
            "ledger_id": 1, "first": 2, "last": 3, "callback": lambda entries, error: None,
            "expected_reads": None, "now_ns": 5},
        ("PendingReadsManager", "complete"): {"token": 1, "entries": []},
        ("PendingReadsManager", "fail"): {"token": 1, "error": OSError()},
        ("PendingReadsManager", "invalidate_ledger"): {"ledger_id": 1},
        ("PendingReadsManager", "expire"): {"now_ns": 6},
        ("AckState", "__new__"): {"mark_delete_position": (1, -1), **ACK_LIMITS, "on_resume": None},
        ("AckState", "acknowledge"): {"position": (1, 5)},
        ("AckState", "acknowledge_all"): {"positions": [(1, 5)]},
        ("AckState", "acknowledge_index"): {"position": (1, 7), "index": 0, "batch_size": 2},
        ("AckState", "mark_delete"): {"position": (1, 1)},
        ("AckState", "end_ledger"): {"ledger_id": 1, "last_entry_id": 9, "following": 2},
        ("AckState", "contains_index"): {"position": (1, 7), "index": 0},
        ("AckState", "may_dispatch"): {"replay": True, "delayed": True},
        ("AckState", "configure"): ACK_LIMITS,
        ("AckState", "set_metadata_bytes"): {"metadata_bytes": 5},
        ("AckState", "encode"): {"in_metadata_store": True},
        ("AckState", "restore"): {
            "mark_delete_position": (1, -1), "data": b"", "ranges": 0, "batches": 0,
            **ACK_LIMITS, "on_resume": None},
        **DELAYED,
    }  # fmt: skip
    manager = EntryCacheManager(**arguments["EntryCacheManager", "__new__"])
    objects: dict[str, Any] = {
        "EntryCacheManager": manager,
        "RangeCache": manager.range_cache("a"),
    }
    objects["ReceiveBuffer"] = manager.receive_buffer(100)
    objects["ReceiveBufferSize"] = ReceiveBufferSize(**arguments["ReceiveBufferSize", "__new__"])
    objects["Entry"] = manager.entry((9, 9), b"x")
    objects["ActiveManagedCursorContainer"] = ActiveManagedCursorContainer(
        **arguments["ActiveManagedCursorContainer", "__new__"]
    )
    objects["ManagedCursorContainer"] = objects["_NamedCursors"] = ManagedCursorContainer()
    limiter = objects["InflightReadsLimiter"] = InflightReadsLimiter(
        **arguments["InflightReadsLimiter", "__new__"]
    )
    objects["AckState"] = AckState(**arguments["AckState", "__new__"])
    topics = InMemoryDelayedDeliveryTrackerFactory(**DELAYED[FACTORY, "__new__"])
    objects |= {FACTORY: topics, VIEW: topics.new_tracker("a")}
    objects["Permits"] = limiter.acquire(1, print)
    arguments["PendingReadsManager", "__new__"]["manager"] = manager
    objects["PendingReadsManager"] = PendingReadsManager(
        **arguments["PendingReadsManager", "__new__"]
    )
    for (owner, function), passed in arguments.items():
        assert keywords("pulsar_ml._core", owner, function) == set(passed), (owner, function)
        if function != "__new__":
            getattr(objects[owner], function)(**passed)
    assert methods_with_keywords("pulsar_ml._core") == set(arguments)
    manager.close()


def methods_with_keywords(module: str) -> set[tuple[str, str]]:
    tree = ast.parse(stub_of(module).read_text())
    found = set()
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for function in (node for node in owner.body if isinstance(node, ast.FunctionDef)):
            if keywords(module, owner.name, function.name) and "property" not in ast.dump(function):
                found.add((owner.name, function.name))
    return {pair for pair in found if pair[1] not in {"__buffer__", "__contains__"}}


@pytest.mark.parametrize(
    ("owner", "function", "names"),
    [
        (Subject, "create", {"threads", "settings"}),
        (Subject, "operation", {"name"}),
        (Instance, "__new__", {"subject", "threads", "settings"}),
        (Instance, "call", {"name", "thread"}),
    ],
)
def test_the_stub_of_the_subjects_names_the_parameters(
    owner: type, function: str, names: set[str]
) -> None:
    assert keywords("pulsar_ml.harness.subjects.subject", owner.__name__, function) == names


def test_subjects_take_their_parameters_by_name(toys: Any) -> None:
    subject = next(iter(toys.SUBJECTS.values()))
    for instance in (
        subject.create(threads=1, settings={}),
        Instance(subject=subject, threads=1, settings=None),
    ):
        operation = subject.operation(name=subject.operations[0].name)
        instance.call(operation.name, *[argument.low for argument in operation.arguments], thread=0)
        instance.check()


def test_the_classes_say_which_parameter_is_wrong() -> None:
    nonsense: dict[str, Any] = {"nonsense": 1}
    with pytest.raises(TypeError, match="nonsense"):
        EntryCacheManager(**nonsense)
    with pytest.raises(TypeError, match="nonsense"):
        EntryCacheManager().range_cache("a").put((1, 1), b"x", **nonsense)
    assert (RangeCache.put.__doc__ or "").startswith("Cache an entry")

"""A policy is one file and one row of the table in eviction_policy.pxd: names elsewhere follow."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from types import ModuleType

import pytest

from pulsar_ml import EntryCacheManager
from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.config.settings import BY_KEY
from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_extension
from pulsar_ml.operations import _native
from pulsar_ml.simulate.variant import POLICY, VARIANTS
from pulsar_ml.specs.policies import POLICIES
from tests import ROOT

NAMES = list(EVICTION_POLICIES)

# The copy of the structures is built once.
pytestmark = pytest.mark.xdist_group("policies")

# The file of a new policy, which never evicts the first entry that it sees.
NEW_FILE = """
from libc.stdint cimport uint32_t

from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_recycle,
)
from pulsar_ml.structures.mpsc_queue cimport mpsc_peek, mpsc_poll
from pulsar_ml.structures.policy_pass cimport (
    EvictionPass, PolicyBase, PolicyRow, pass_remove, policy_row,
)
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write


cdef struct Sparing:
    bint spared             # the first entry was kept


# Drops the head of the queue, but keeps the first one for ever.
cdef inline bint sparing_step(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef Sparing* sparing = <Sparing*>base.state
    cdef uint32_t handle = mpsc_peek(&base.intake.queue)
    cdef EntryWrapper* wrapper
    if not handle or run.removed.bytes >= run.target:
        return False
    mpsc_poll(&base.intake.queue)
    if not sparing.spared:
        sparing.spared = True
        return True
    wrapper = wrapper_at(&base.memory.wrappers, handle)
    stamped_lock_write(&wrapper.lock)
    if not wrapper_is_empty(wrapper):
        pass_remove(base, run, handle, wrapper)
    stamped_unlock_write(&wrapper.lock)
    wrapper_recycle(&base.memory.wrappers, handle)
    return True


cdef inline PolicyRow sparing_row() noexcept nogil:
    cdef PolicyRow row = policy_row(b"sparing", b"never the first entry", sparing_step)
    row.state_bytes = sizeof(Sparing)
    return row
"""
NEW_ROW = "        sparing_row,\n"

BROKER = """
from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from pulsar_ml.structures.entry cimport Payload, entry_new, payload_new
from pulsar_ml.structures.eviction_policy cimport (
    EvictionPolicy, eviction_destroy, eviction_init, eviction_policies, eviction_row, eviction_run,
)
from pulsar_ml.structures.policy_pass cimport EvictionPass, PolicyRow, PolicySettings, size_pass
from pulsar_ml.structures.position cimport position
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport (
    CacheMemory, RangeCache, cache_memory_destroy, cache_memory_init, range_cache_cursor,
    range_cache_delete, range_cache_exists, range_cache_new, range_cache_put, range_cache_remove,
)
from pulsar_ml.structures.status cimport PML_OK


def names():
    cdef PolicyRow row
    cdef int64_t number
    found = []
    for number in range(eviction_policies()):
        assert eviction_row(number, &row)
        found.append(row.name.decode())
    assert not eviction_row(len(found), &row) and not eviction_row(len(found) + 9, &row)
    return found


def left_after(int64_t number, int64_t entries, int64_t freed):
    cdef CacheMemory memory
    cdef EvictionPolicy policy
    cdef RangeCache* cache
    cdef MapCursor cursor
    cdef EvictionPass run = size_pass(freed, 1)
    cdef Payload* payload
    cdef int64_t i
    assert cache_memory_init(&memory, 4, 1 << 10) == PML_OK
    assert eviction_init(&policy, number, &memory, 4, PolicySettings(0, False, 0)) == PML_OK
    cache = range_cache_new(&memory, &policy.base.intake)
    for i in range(entries):
        payload = payload_new(&memory.entries.payloads, 1)
        range_cache_put(cache, position(1, i),
                        entry_new(&memory.entries, position(1, i), payload, 0, False), 1, i)
    eviction_run(&policy, &run, 1000)
    left = [i for i in range(entries) if range_cache_exists(cache, position(1, i))]
    cursor = range_cache_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
    range_cache_remove(cache, &cursor, INT64_MAX)
    range_cache_delete(cache)
    eviction_destroy(&policy)
    cache_memory_destroy(&memory)
    return left
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A copy of the structures with one more policy file and one more row, compiled."""
    tree = tmp_path_factory.mktemp("extended")
    for folder in ("sync", "structures"):
        shutil.copytree(ROOT / "pulsar_ml" / folder, tree / "pulsar_ml" / folder)
    for name in ("__init__.py", "__init__.pxd"):
        (tree / "pulsar_ml" / name).touch()
    structures = tree / "pulsar_ml" / "structures"
    (structures / "sparing.pxd").write_text(NEW_FILE)
    table = structures / "eviction_policy.pxd"
    text = table.read_text()
    assert text.count("        NULL,\n") == 1
    text = text.replace("        NULL,\n", NEW_ROW + "        NULL,\n")
    cimport = "from pulsar_ml.structures.sparing cimport sparing_row\n"
    text = text.replace(
        "from pulsar_ml.structures.stash_queue", cimport + "from pulsar_ml.structures.stash_queue"
    )
    table.write_text(text)
    (tree / "broker.pyx").write_text(BROKER)
    built = build_extension(tree / "broker.pyx", into=tree / "built", include=[tree], flags=["-O0"])
    return load_extension(built)


def test_a_new_file_and_a_new_row_are_a_new_policy(extended: ModuleType) -> None:
    assert extended.names() == [*NAMES, "sparing"]


def test_the_new_policy_evicts(extended: ModuleType) -> None:
    assert extended.left_after(len(NAMES), 6, 3) == [0, 4, 5]
    assert extended.left_after(NAMES.index("central_queue"), 6, 3) == [3, 4, 5]


def test_a_manager_takes_every_policy() -> None:
    for name in NAMES:
        with EntryCacheManager(policy=name) as manager:
            assert manager.policy == name


def test_the_configuration_offers_the_rows() -> None:
    setting = BY_KEY[POLICY]
    assert list(setting.choices) == NAMES
    assert setting.default == NAMES[0]


def test_the_simulator_has_a_variant_of_every_row() -> None:
    assert {variant.settings[POLICY] for variant in VARIANTS} == set(NAMES)


def test_suites_draw_from_all_rows_and_models_have_their_order() -> None:
    for name in ("range_cache", "removal_queue", "eviction_policy", "cache_manager"):
        (drawn,) = (s for s in _native.SUBJECTS[name].settings if s.name == "policy")
        assert (drawn.low, drawn.high) == (0, len(NAMES) - 1)
    assert [model.name for model in POLICIES] == NAMES


def documented(page: str) -> list[str]:
    """The policies in the table of the page's section "Kinds"."""
    section = page.split("\n## Kinds\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)`", section, re.MULTILINE)


def test_the_page_lists_the_rows() -> None:
    page = (ROOT / "docs" / "structures" / "eviction_policy.md").read_text()
    assert documented(page) == NAMES
    assert documented(page.replace("| `lru` |", "| lru |")) != NAMES


def lists_of_names(sources: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Product files that spell two or more policies' names beside each other, as a list does."""
    one = "|".join(names)
    pair = re.compile(rf"""["'](?:{one})["'][^"'\n]*,\s*["'](?:{one})["']""")
    return [path for path, text in sources.items() if pair.search(text)]


def test_no_other_product_file_lists_the_names() -> None:
    product = {
        path.as_posix(): path.read_text()
        for path in (ROOT / "pulsar_ml").rglob("*")
        if path.suffix in {".py", ".pyx", ".pxd", ".pxi", ".pyi"}
    }
    assert lists_of_names(product, NAMES) == []
    wrong = {
        "a.py": 'KINDS = ("central_queue", "lru")\n',
        "b.py": 'x = {"lru": 4,\n  "s3_fifo": 5}\n',
    }
    assert lists_of_names(wrong, NAMES) == ["a.py", "b.py"]

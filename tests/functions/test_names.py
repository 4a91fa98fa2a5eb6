"""Locations in failures have the names of the source: declared, of variables, or of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsar_ml import _core
from pulsar_ml.harness.functions.check import build_tests, check_function
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.locations.debug_info import debug_info, member_at, plain_name, signed_leb
from pulsar_ml.harness.search.symbols import in_source
from tests import ROOT
from tests.functions.test_header import BUILDS, HEADER, checked

LINES = HEADER.read_text().splitlines()


def line_with(text: str) -> int:
    (number,) = (number for number, line in enumerate(LINES, 1) if text in line)
    return number


NODE = f"Node@header.cpp:{line_with('new Node{1}')}"
NODES = f"Node@header.cpp:{line_with('new Node[2]')}"
SHARED = f"Node@header.cpp:{line_with('make_shared<Node>')}"


@pytest.mark.parametrize(
    ("test", "location", "others"),
    [
        ("test_name_buggy", "the ring.slots[2]", ()),
        ("test_local_buggy", "ring.slots[1]", ()),
        (
            "test_global_buggy",
            "stack.spare",
            (f"{NODE}.next <-", "stack.top <-", f"<- &{NODE}", "Stack::count: 0 -> 1", f"{NODE}#2"),
        ),
        ("test_array_buggy", "counts[1][2]", ()),
        ("test_heap_buggy", f"{SHARED}.value", ()),
    ],
)
def test_a_location_is_named(test: str, location: str, others: tuple[str, ...]) -> None:
    text = checked(test, strategy="preemptions").text
    assert f"  location: {location}\n" in text
    if test == "test_global_buggy":
        # The first failure ends before the second thread pushes.
        text = checked(test, races=False, seed=1).text or text
        others = others[:4]
    for other in others:
        assert other in text


def test_an_element_and_a_pointer_of_an_array_are_named() -> None:
    # Without races the failure is the leak, in front of which all accesses are shown.
    text = checked("test_heap_buggy", races=False).text
    assert "leak at byte 0 of a block of 32, allocated at test_heap_buggy()" in text
    assert f"at <- &{NODES} seq_cst" in text
    assert f"{NODES}[1].next <- 0" in text
    assert f"{SHARED}.next <- 0" in text


def test_a_declared_name_is_that_of_the_smallest_object() -> None:
    source = read_source(HEADER)
    subject = build_tests(source, into=BUILDS)["test_name_buggy"]
    (function,) = (each for each in source.tests if each.name == "test_name_buggy")
    result = check_function(HEADER, function, subject, executions=1)
    assert result.failure is not None
    assert "our head <- 1 seq_cst" in result.text
    assert "the ring.head" not in result.text


def test_reused_memory_has_no_name() -> None:
    text = checked("test_reused_buggy", reuse="reuse").text
    assert "location:" not in text
    assert "write m0" in text
    assert "location: int@header.cpp:" in checked("test_reused_buggy", reuse="quarantine").text


C = """#include <pthread.h>
#include <stdlib.h>
struct point {{ int x, y; union {{ int whole; short half[2]; }}; struct {{ int z[2]; }} deep; }};
struct point global;
__attribute__((noinline)) static void *write(void *of) {{ {access} = 1; return of; }}
void test_point(void) {{
    static int hidden;
    struct point *heap = malloc(sizeof(struct point)), local;
    local.x = heap->y = hidden = 0;
    pthread_t thread;
    pthread_create(&thread, 0, write, {of});
    write({of});
    pthread_join(thread, 0);
    free(heap);
}}
"""


@pytest.mark.parametrize(
    ("access", "of", "location"),
    [
        ("global.deep.z[1]", "0", "global.deep.z[1]"),
        ("((struct point *)of)->deep.z[1]", "heap", "point@some.c:8.deep.z[1]"),
        ("((struct point *)of)->half[1]", "&local", "local.half[1]"),
        ("*(int *)of", "&hidden", "hidden"),
    ],
)
def test_in_c(tmp_path: Path, access: str, of: str, location: str) -> None:
    path = tmp_path / "some.c"
    path.write_text(C.format(access=access, of=of))
    source = read_source(path)
    (subject,) = build_tests(source, into=tmp_path).values()
    result = check_function(path, source.tests[0], subject, executions=10)
    assert result.failure is not None
    assert result.failure.kind == "data race"
    assert f"location: {location}\n" in result.text


def test_a_file_without_debug_information_names_nothing(tmp_path: Path) -> None:
    assert debug_info(str(tmp_path / "missing.so")) is None
    text = tmp_path / "text.so"
    text.write_text("no ELF file")
    assert debug_info(str(text)) is None
    assert debug_info(_core.__file__) is None  # no checked build
    assert member_at(None, 0) == ""
    assert member_at(None, 4) == "+4"


def test_parts_of_debug_information() -> None:
    assert plain_name("__pyx_v_10some_tests_counter") == "counter"
    assert plain_name("__pyx_v_3a_b_7counter") == "7counter"
    assert plain_name("counter") == "counter"
    assert signed_leb([0xB0, 0x7F]) == -80
    assert signed_leb([0x08]) == 8


def test_names_are_read_when_a_failure_is_printed() -> None:
    import subprocess
    import sys

    script = "import sys, pulsar_ml.harness.functions.check; print('elftools' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]


C_BLOCKS = """#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct { int *slots; unsigned size; atomic_uint tail; } ring_t;
struct node { int value; };
static atomic_int turn;
_Atomic(atomic_int *) shown;  /* Clang leaves a static one out, as nobody reads it */

static ring_t *ring_new(unsigned size)
{
    ring_t *ring = calloc(1, sizeof *ring);
    ring->slots = calloc(size, sizeof(int)), ring->size = size;
    return ring;
}

static void *put(void *at)
{
    ring_t *ring = at;
    ring->slots[3 % ring->size] = 1;
    ring->tail++;
    atomic_store(&shown, &turn);
    return 0;
}

void test_ring(void)
{
    ring_t *ring = ring_new(2); struct node *node = (struct node *)malloc(sizeof *node);
    pthread_t thread;
    node->value = 1;
    pthread_create(&thread, 0, put, ring);
    assert(ring->tail == 0 || ring->slots[1] == 2);
    pthread_join(thread, 0);
    assert(ring->slots[1] == node->value);
}
"""


def described(folder: Path, **options: Any) -> str:
    path = folder / "ring.c"
    path.write_text(C_BLOCKS)
    source = read_source(path)
    subjects = build_tests(source, into=folder / "build")
    return check_function(path, source.tests[0], subjects["test_ring"], **options).text


def test_blocks_of_c_have_the_type_of_their_pointer(tmp_path: Path) -> None:
    """The types are in ``sizeof *ring``, a typedef without another name, an array, and a cast."""
    text = described(tmp_path, races=False, executions=2_000)
    assert "ring_t@ring.c:13.tail" in text
    assert "write int@ring.c:14[1]" in text
    assert "allocate node@ring.c:29 " in text


def test_what_nobody_changes_once_threads_share_it_is_no_row(tmp_path: Path) -> None:
    text = described(tmp_path, races=False, executions=2_000)
    assert "write int@ring.c:14[1]" in text, "the slot is changed by the second thread"
    assert ".size" not in text and ".slots" not in text, "they are as they were before it began"


def test_an_address_of_a_variable_has_its_name(tmp_path: Path) -> None:
    assert "shown <- &turn seq_cst" in described(tmp_path, races=False, executions=2_000)


def test_the_header_counts_the_threads_that_the_test_starts(tmp_path: Path) -> None:
    text = described(tmp_path, races=False, executions=2_000)
    assert "  test_ring, 2 threads, mode c11, " in text
    assert "operation" not in text.splitlines()[1]


MAP = """#include <map>
#include <memory>
#include <thread>

void test_map()
{
    std::map<int, std::shared_ptr<int>> entries;
    bool found = false;
    std::thread other([&] { found = entries.count(1); });
    entries[1] = std::make_shared<int>(1);
    other.join();
    if (found)
        entries.clear();
}
"""


def test_a_block_of_another_type_than_its_line_names_has_none(tmp_path: Path) -> None:
    """The node of the map is no int, which std::make_shared allocates in that line."""
    path = tmp_path / "map.cpp"
    path.write_text(MAP)
    source = read_source(path)
    text = check_function(path, source.tests[0], build_tests(source, into=BUILDS)["test_map"]).text
    assert "  location: entries" in text or "  location: block@map.cpp:10" in text
    assert "int@map.cpp:10+" not in text
    assert "by spawn at test_map() " in text and "which started thread 1\n" in text
    assert "invoke.h" not in text


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("std::reference_wrapper<test_a()::$_0>", "test_a()::$_0"),
        ("test_a()::{lambda()#1}", "test_a()::{lambda()#1}"),
        ("void (*)(int), int", "the function of a thread"),
    ],
    ids=["clang", "gcc", "function"],
)
def test_a_lambda_of_a_thread_has_the_compilers_name(called: str, name: str) -> None:
    run = f"std::thread::_State_impl<std::thread::_Invoker<std::tuple<{called}> > >::_M_run()"
    assert in_source(run) == name

"""Sentences on causes: each is there where it holds, and absent where it does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from pulsar_ml.harness.causes.reads_from import lost_update
from pulsar_ml.harness.causes.why import why
from pulsar_ml.harness.functions.check import build_tests, check_function
from pulsar_ml.harness.functions.source import read_source

SOURCE = """\
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <thread>

std::atomic<int> ready, first, second, count;
int data;
std::mutex m1, m2;
std::condition_variable cv;
struct Node { int value; };
std::atomic<Node *> top;
Node *kept;

void test_relaxed_store() {
    std::thread other([] {
        data = 42;
        ready.store(1, std::memory_order_relaxed);  // publishes
    });
    while (ready.load(std::memory_order_acquire) == 0) {}
    data++;
    other.join();
}

void test_relaxed_load() {
    std::thread other([] {
        data = 42;
        std::atomic_thread_fence(std::memory_order_release);
        ready.store(1, std::memory_order_relaxed);
    });
    while (ready.load(std::memory_order_relaxed) == 0) {}
    data++;
    other.join();
}

void test_behind_unlock() {
    std::thread other([] {
        { std::lock_guard guard(m1); data = 1; }
        data = 2;  // unlocked
    });
    { std::lock_guard guard(m1); data = 3; }
    other.join();
}

void test_stale_message() {
    std::thread other([] {
        first.store(7, std::memory_order_relaxed);  // missed
        ready.store(1, std::memory_order_relaxed);
    });
    if (ready.load(std::memory_order_acquire)) assert(first.load(std::memory_order_relaxed));
    other.join();
}

void test_both_look() {
    int seen = 0, own = 0;
    std::thread other([&] {
        first.store(1, std::memory_order_release);
        seen = second.load(std::memory_order_acquire);
    });
    second.store(1, std::memory_order_release);
    own = first.load(std::memory_order_acquire);
    other.join();
    assert(seen || own);
}

void test_lost_update() {
    std::thread other([] { count.store(count.load() + 1); });
    count.store(count.load() + 1);
    other.join();
    assert(count.load() == 2);
}

void test_lost_in_locks() {
    auto add = [] {
        int seen;
        { std::lock_guard own(m1); seen = data; }
        { std::lock_guard own(m1); data = seen + 1; }
    };
    data = 0;
    std::thread other(add);
    add();
    other.join();
    assert(data == 2);
}

void test_never_two() {
    std::thread other([] { count.store(1); });
    other.join();
    assert(count.load() == 2);
}

void test_crossed_locks() {
    std::thread other([] {
        std::lock_guard one(m1);
        std::lock_guard two(m2);
    });
    {
        std::lock_guard one(m2);
        std::lock_guard two(m1);
    }
    other.join();
}

void test_lost_wake_up() {
    std::thread other([] { cv.notify_one(); });
    { std::unique_lock lock(m1); cv.wait(lock); }
    other.join();
}

void test_no_wake_up() {
    { std::unique_lock lock(m1); cv.wait(lock); }
}

void test_waits_in_a_loop() {
    std::thread other([] { while (ready.load() == 0) {} });
    other.join();
}

__attribute__((noinline)) void drop(Node *node) { delete node; }

void test_double_free() {
    top = new Node{1};
    std::thread other([] { drop(top.load()); });
    drop(top.load());
    other.join();
}

void test_late_use() {
    top = new Node{1};
    std::thread other([] {
        while (ready.load() == 0) {}
        top.load()->value = 2;
    });
    drop(top.load());
    ready = 1;
    other.join();
}

void test_leak() {
    top = new Node{1};
    std::thread other([] { top.store(new Node{2}); });
    other.join();
    delete top.load();
}

void test_leak_elsewhere() {
    std::thread other([] { kept = new Node{3}; });
    other.join();
    kept = nullptr;
}
"""

Reasons = Callable[..., tuple[str, ...]]


def at(text: str, test: str = "") -> str:
    """The place of the first line with a text, behind the beginning of a test."""
    start = SOURCE.index(f"void {test}()") if test else 0
    return f"why.cpp:{SOURCE[: SOURCE.index(text, start)].count(chr(10)) + 1}"


@pytest.fixture(scope="module")
def reasons(tmp_path_factory: pytest.TempPathFactory) -> Reasons:
    """Returns the sentences on the failure of a test."""
    folder = tmp_path_factory.mktemp("why")
    path = folder / "why.cpp"
    path.write_text(SOURCE)
    source = read_source(path)
    subjects = build_tests(source, into=folder)
    tests = {test.name: test for test in source.tests}

    @cache
    def of(name: str, mode: str = "c11") -> tuple[str, ...]:
        subject = subjects[name]
        found = check_function(path, tests[name], subject, executions=3_000, mode=mode)
        assert found.failure is not None, name
        again = found.failure.replay(subject)
        assert again.exact
        return why(found.failure, subject, again.trace)

    return of


def has(sentences: tuple[str, ...], *parts: str) -> bool:
    """True if one sentence has all parts."""
    return any(all(part in sentence for part in parts) for sentence in sentences)


def test_a_race_names_the_orders_that_do_not_synchronise(reasons: Reasons) -> None:
    name = "test_relaxed_store"
    assert reasons(name)[0] == (
        f"the store of ready at {at('ready.store', name)} is relaxed and the load of ready at "
        f"{at('ready.load', name)}, which read it, acquires: they do not synchronise"
    )
    # GCC gives the last line of the declaration, Clang its first one.
    started = {at(text, name) for text in ("});", "std::thread other")}
    assert any(has(reasons(name), f"started thread 1 at {each}", "none of its") for each in started)
    assert not has(reasons(name), "held")
    name = "test_relaxed_load"
    assert reasons(name)[0] == (
        f"the store of ready at {at('ready.store', name)} releases and the load of ready at "
        f"{at('ready.load', name)}, which read it, is relaxed: they do not synchronise"
    )


def test_a_race_behind_a_lock_names_the_hand_over_and_the_locks_held(reasons: Reasons) -> None:
    name = "test_behind_unlock"
    locked, unlocked = at("m1); data = 3", name), at("m1); data = 1", name)
    assert has(
        reasons(name),
        f"thread 0 last learned of thread 1 by the lock of m1 at {locked}, behind the unlock of m1 "
        f"at {unlocked}: the write of data at {at('// unlocked')} came after that",
    )
    assert has(reasons(name), f"thread 1 held no lock and thread 0 held m1, locked at {locked}")
    assert not has(reasons(name), "do not synchronise")


def test_a_stale_read_names_the_missed_store_and_the_orders(reasons: Reasons) -> None:
    name = "test_stale_message"
    assert reasons(name)[0] == (
        f"the load of first at {at('assert', name)} read 0 and missed 1 newer store: 7 by thread 1 "
        f"at {at('// missed')}"
    )
    assert has(reasons(name), f"the store of ready at {at('ready.store', name)} is relaxed")
    assert not has(reasons(name), "sequential consistency")


def test_two_stale_reads_that_cross_need_sequential_consistency(reasons: Reasons) -> None:
    assert has(reasons("test_both_look"), "each missed the other's store", "sequential")
    assert not has(reasons("test_both_look"), "do not synchronise")


def test_a_store_in_a_buffer_is_not_seen(reasons: Reasons) -> None:
    assert has(reasons("test_both_look", "tso"), "still stood in the buffer of thread")


def test_an_update_that_was_overwritten_is_lost(reasons: Reasons) -> None:
    name = "test_lost_update"
    first, other = at("    count.store", name), at("std::thread", name)
    assert has(reasons(name), "read count as 1 at", "stored by")
    assert has(reasons(name), "that update is lost", first, other)
    assert not has(reasons(name), "missed")
    name = "test_lost_in_locks"
    read, write = at("seen = data", name), at("data = seen", name)
    assert has(reasons(name), "read data as 1 at", f"stored by itself at {write}")
    assert has(
        reasons(name),
        f"between its read of data at {read} and its store at {write}, thread",
        f"wrote there at {write}: that update is lost",
    )
    assert has(reasons("test_never_two"), "thread 0 read count as 1", "stored by thread 1")
    assert not has(reasons("test_never_two"), "lost")


@pytest.mark.parametrize(
    ("unseen", "store", "found"),
    [
        ({}, {}, (0, 1)),
        ({"address": 10}, {}, (0, 1)),  # of common bytes
        ({"address": 12}, {}, None),
        ({"op": "cas", "failed": True}, {}, None),
        ({"thread": 0}, {}, None),
        ({}, {"op": "rmw"}, None),
        ({}, {"thread": 2}, None),  # it read nothing there
    ],
)
def test_a_lost_update_stands_between_a_read_and_a_store_of_one_thread(
    unseen: dict[str, Any], store: dict[str, Any], found: tuple[int, int] | None
) -> None:
    step = {"address": 8, "width": 4, "failed": False}
    read, write = {**step, "op": "read", "thread": 0}, {**step, "op": "write", "thread": 1}
    assert lost_update([read, write | unseen, write | {"thread": 0} | store], 2) == found


def test_a_deadlock_is_a_cycle_of_locks(reasons: Reasons) -> None:
    name = "test_crossed_locks"
    assert reasons(name)[-1] == "thread 0 and thread 1 wait for each other: a cycle"
    takes = {part: at(part, name) for part in ("one(m1)", "two(m2)", "one(m2)", "two(m1)")}
    assert has(
        reasons(name),
        f"thread 0 holds m2, locked at {takes['one(m2)']}, and waits for m1 at {takes['two(m1)']}, "
        f"which thread 1 holds since {takes['one(m1)']}",
    )
    assert has(reasons(name), f"waits for m2 at {takes['two(m2)']}")


def test_a_wake_up_before_the_wait_is_lost(reasons: Reasons) -> None:
    name = "test_lost_wake_up"
    assert has(
        reasons(name),
        f"the wake-up of cv at {at('notify_one', name)} by thread 1 found no thread waiting",
        f"began to wait at {at('cv.wait', name)} after it",
    )
    assert not has(reasons(name), "cycle")
    assert reasons("test_no_wake_up")[-1] == "no thread woke cv in this execution"
    assert not has(reasons("test_no_wake_up"), "lost")


def test_a_loop_names_what_it_reads(reasons: Reasons) -> None:
    name = "test_waits_in_a_loop"
    assert has(reasons(name), f"reads ready as 0 again and again at {at('while', name)}")
    assert not has(reasons("test_crossed_locks"), "again and again")


def test_a_double_free_has_its_stacks(reasons: Reasons) -> None:
    name = "test_double_free"
    assert has(reasons(name), "was allocated by thread 0", at("new Node", name))
    drop = at("delete node")
    for way, place in (("released by", ""), ("released again by", "")):
        assert has(reasons(name), way, f"{drop}, called from", place)
    assert has(reasons(name), "read its address from top")
    assert has(reasons(name), "is not ordered before")


def test_a_use_after_an_ordered_release(reasons: Reasons) -> None:
    name = "test_late_use"
    assert has(reasons(name), f"it was used by thread 1 at {name}", at("->value = 2", name))
    assert has(reasons(name), "is ordered before this access of thread 1")
    assert not has(reasons(name), "again")


def test_a_leak_names_the_store_that_replaced_the_address(reasons: Reasons) -> None:
    name = "test_leak"
    assert has(
        reasons(name),
        f"its address was put into top at {at('new Node{1}', name)}, and thread 1 replaced it "
        f"there at {at('new Node{2}', name)}",
    )
    assert has(reasons("test_leak_elsewhere"), "was allocated by thread 1")
    assert not has(reasons("test_leak_elsewhere"), "replaced")

"""Mutants of the managed ledger's Python code: edits of a line or two, each found by a program.

A mutant changes the code of functions in this process and puts it back. Edits add and remove no
variable of an enclosing function.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from tests.managed_ledger.interleaved import programs


@dataclass(frozen=True, slots=True)
class Mutant:
    """An edit of a module of ``pulsar_ml.managed_ledger``.

    Attributes:
        name: what is wrong with the code, in a few words.
        module, before, after: the edit; ``before`` stands once in the module's source.
        program: the program that finds it.
        strategy: the strategy of the engine that does.
    """

    name: str
    module: str
    before: str
    after: str
    program: Callable[[], None]
    strategy: str = "portfolio"


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions in a module's source, also of its classes, and getters of properties."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        members = vars(value).values() if inspect.isclass(value) else [value]
        for member in members:
            found = member.fget if isinstance(member, property) else member
            if isinstance(found, FunctionType) and found.__code__.co_filename == module.__file__:
                yield found


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


@contextmanager
def applied(mutant: Mutant) -> Iterator[int]:
    """Change the code of the functions that a mutant changes; yields how many there are."""
    module = importlib.import_module(f"pulsar_ml.managed_ledger.{mutant.module}")
    source = inspect.getsource(module)
    assert source.count(mutant.before) == 1, (mutant.name, source.count(mutant.before))
    changed = source.replace(mutant.before, mutant.after)
    compiled = compile(changed, str(module.__file__), "exec", dont_inherit=True)
    codes = {code.co_qualname: code for code in codes_of(compiled)}
    kept = {function: function.__code__ for function in functions_of(module)}
    try:
        for function, code in kept.items():
            if same_instructions(code, codes[code.co_qualname]):
                continue
            function.__code__ = codes[code.co_qualname]
        yield sum(function.__code__ is not code for function, code in kept.items())
    finally:
        for function, code in kept.items():
            function.__code__ = code


def same_instructions(one: CodeType, other: CodeType) -> bool:
    """Return True for codes that do the same, wherever their lines are."""
    facts = ("co_code", "co_names", "co_varnames", "co_freevars")
    if any(getattr(one, name) != getattr(other, name) for name in facts):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        same_instructions(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else a == b
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "appends without a lock",
        "ledger",
        "        with self.adding:\n            self.check_open()\n            ledger_id",
        "        if self.adding:\n            self.check_open()\n            ledger_id",
        programs.two_appenders,
    ),
    Mutant(
        "a second read of a cursor is let in",
        "cursors.cursor",
        "        with ledger.lock:\n            if self.reading:\n",
        "        if ledger.lock:\n            if self.reading:\n",
        programs.two_reads_of_a_cursor,
    ),
    Mutant(
        "a cursor is registered twice",
        "ledger",
        "            if cursor.name in self.cursors:\n                return self.cursors[cursor.name]\n",
        "",
        programs.two_openers,
    ),
    Mutant(
        "a ledger is opened twice",
        "factory",
        "        with self.lock:\n            if self.closed.is_set():\n                raise",
        "        if self.lock:\n            if self.closed.is_set():\n                raise",
        programs.two_openers_of_a_ledger,
    ),
    Mutant(
        "a mark of the last entry leaves its ledger",
        "ledgers",
        "self.entries(ledger_id) - 1) > position:",
        "self.entries(ledger_id) - 1) >= position:",
        programs.a_mark_on_the_last_entry_of_a_ledger,
    ),
    Mutant(
        "a late cursor is not stored before a ledger goes",
        "ledger",
        "            cursor.store_position()  # A restart",
        "            cursor.is_position_stored  # A restart",
        programs.a_trim_with_a_late_cursor,
    ),
    Mutant(
        "only the slowest position counts as late",
        "ledger",
        "if cursor.durable and not cursor.is_position_stored\n",
        "if cursor.durable and cursor.mark_delete_position < passed\n",
        programs.a_trim_with_a_late_cursor,
    ),
    Mutant(
        "an entry that is queued expects a read each time",
        "cursors.replay_queue",
        "                if at in self.positions or not self.is_wanted(at):\n",
        "                if not self.is_wanted(at):\n",
        programs.an_entry_queued_twice_for_replay,
    ),
    Mutant(
        "the queue is looked at before the lock",
        "cursors.replay_queue",
        "            with self.ledger.lock:\n                if at in self.positions or",
        "            known = at in self.positions\n"
        "            with self.ledger.lock:\n                if known or",
        programs.an_entry_queued_twice_for_replay,
    ),
    Mutant(
        "the queue forgets to look whether an entry is acknowledged",
        "cursors.replay_queue",
        "        return self.ledger.log.contains(position) and not self.is_deleted(position)\n",
        "        return self.ledger.log.contains(position)\n",
        programs.an_acknowledgement_beside_a_replay,
    ),
    Mutant(
        "an entry is queued behind the lock",
        "cursors.replay_queue",
        "                    continue\n                self.positions.add(at)\n",
        "                    continue\n            self.positions.add(at)\n",
        programs.a_mark_beside_a_replay,
    ),
    Mutant(
        "a mark leaves the queue as it is",
        "cursors.cursor",
        "        self.replays.drop_up_to(mark)\n",
        "",
        programs.a_mark_beside_a_replay,
    ),
    Mutant(
        "two replays take from the queue at once",
        "cursors.replay_queue",
        "        with self.ledger.lock:\n            waiting =",
        "        if self.ledger.lock:\n            waiting =",
        programs.two_replays,
    ),
    Mutant(
        "a seek goes before the mark",
        "cursors.cursor",
        "            self.read_position = max(position, after(self.mark_delete_position))\n",
        "            self.read_position = position\n",
        programs.a_seek_before_the_mark,
    ),
    Mutant(
        "a seek compares with a mark that it read before the lock",
        "cursors.cursor",
        "        with self.ledger.lock:\n            self.seeks += 1\n"
        "            self.read_position = max(position, after(self.mark_delete_position))\n",
        "        position = max(position, after(self.mark_delete_position))\n"
        "        with self.ledger.lock:\n            self.seeks += 1\n"
        "            self.read_position = position\n",
        programs.a_seek_before_the_mark,
    ),
    Mutant(
        "a mark leaves the read position behind",
        "cursors.cursor",
        "        self.read_position = max(self.read_position, after(mark))\n        if",
        "        if",
        programs.a_seek_before_the_mark,
    ),
    Mutant(
        "a read does not notice a seek",
        "cursors.cursor",
        "            current = seeks == self.seeks\n",
        "            current = True\n",
        programs.a_seek_beside_a_read,
    ),
    Mutant(
        "an older position overwrites a newer one",
        "cursors.cursor",
        "        with self.position_lock:\n            at = self.mark_delete_position\n",
        "        at = self.mark_delete_position\n        with self.position_lock:\n",
        programs.two_writers_of_the_position,
        strategy="preemptions",
    ),
    Mutant(
        "marks without a lock",
        "cursors.cursor",
        "            with ledger.lock:\n                last = max(",
        "            if ledger.lock:\n                last = max(",
        programs.two_marks,
    ),
    Mutant(
        "properties are changed without a lock",
        "cursors.cursor",
        "        with self.ledger.lock:\n            self.state.set_metadata(properties=change",
        "        if self.ledger.lock:\n            self.state.set_metadata(properties=change",
        programs.properties_of_two_threads,
    ),
    Mutant(
        "an append goes on behind the close",
        "ledger",
        "        with self.adding:\n            self.check_open()\n",
        "        self.check_open()\n        with self.adding:\n",
        programs.a_close_beside_an_append,
    ),
)

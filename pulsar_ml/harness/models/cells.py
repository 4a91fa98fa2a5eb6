"""Models with a single value: registers, counter, lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import Call


def no_operation(model: object, name: str, known: str) -> UsageError:
    """Return the error for an operation that a model does not have."""
    return UsageError(
        f"the model {type(model).__name__} has no operation {name!r}; it has: {known}"
    )


class Register:
    """A register: read() -> value, write(value). Its initial value is ``initial``."""

    description = "a register"
    operations: ClassVar[Mapping[str, int]] = {"read": 0, "write": 1}
    monitor = "register"

    def __init__(self, initial: Any = None) -> None:
        self.initial = initial

    def init(self) -> Any:
        return self.initial

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        if call.name == "write":
            return (call.arguments[0],)
        if call.name == "read":
            return (state,) if call.pending or call.result == state else ()
        raise no_operation(self, call.name, "read, write")

    def pure(self, call: Call) -> bool:
        return call.name == "read"


class CasRegister(Register):
    """A register with cas(old, new) -> False if the value was not ``old``, else anything else."""

    description = "a compare-and-set register"
    operations: ClassVar[Mapping[str, int]] = {**Register.operations, "cas": 2}
    monitor = "register"

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        if call.name != "cas":
            if call.name not in ("read", "write"):
                raise no_operation(self, call.name, "read, write, cas")
            return super().step(state, call)
        old, new = call.arguments
        if call.pending:
            return (new,) if state == old else (state,)
        if call.result is False:
            return (state,) if state != old else ()
        return (new,) if state == old else ()

    def pure(self, call: Call) -> bool:
        return call.name == "read" or (call.name == "cas" and call.result is False)


class Counter:
    """A counter: add(amount), increment(), decrement(), read() -> value.

    add_and_get(amount) returns the value after, get_and_add(amount) the value before.
    """

    description = "a counter"
    operations: ClassVar[Mapping[str, int]] = {
        "read": 0,
        "increment": 0,
        "decrement": 0,
        "add": 1,
        "add_and_get": 1,
        "get_and_add": 1,
    }

    def __init__(self, initial: int = 0) -> None:
        self.initial = initial

    def init(self) -> int:
        return self.initial

    def step(self, state: int, call: Call) -> Iterable[int]:
        if call.name == "read":
            return (state,) if call.pending or call.result == state else ()
        if call.name in ("increment", "decrement"):
            return (state + 1 if call.name == "increment" else state - 1,)
        if call.name not in ("add", "add_and_get", "get_and_add"):
            known = "read, add, increment, decrement, add_and_get, get_and_add"
            raise no_operation(self, call.name, known)
        amount: Any = call.arguments[0]
        if not isinstance(amount, int | float):
            raise UsageError(f"{call}: a counter takes a number, not {amount!r}")
        after: Any = state + amount
        answer = {"add": call.result, "add_and_get": after, "get_and_add": state}[call.name]
        return (after,) if call.pending or call.result == answer else ()

    def pure(self, call: Call) -> bool:
        return call.name == "read"


class Lock:
    """A lock: acquire(), try_acquire() -> True if acquired, release() by its holder."""

    description = "a lock"
    operations: ClassVar[Mapping[str, int]] = {"acquire": 0, "try_acquire": 0, "release": 0}
    by_thread = True

    def init(self) -> int:
        return -1

    def step(self, state: int, call: Call) -> Iterable[int]:
        if call.name == "acquire":
            return (call.thread,) if state < 0 else ()
        if call.name == "try_acquire":
            if call.pending:
                return (call.thread if state < 0 else state,)
            if call.result:
                return (call.thread,) if state < 0 else ()
            return (state,) if state >= 0 else ()
        if call.name == "release":
            return (-1,) if state == call.thread else ()
        raise no_operation(self, call.name, "acquire, try_acquire, release")

    def describe_state(self, state: int) -> str:
        return "free" if state < 0 else "taken"

    def pure(self, call: Call) -> bool:
        return call.name == "try_acquire" and call.result is False

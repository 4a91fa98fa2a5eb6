from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any

SUPPORTED: int

def answer_stuck(page: Any, signal: int, /) -> None: ...
def attach(
    describe_code: Callable[[CodeType], Any],
    on_exception: Callable[[BaseException], tuple[int, str, str, list[int]]],
    before: Callable[[], object],
    finish: Callable[[], object],
    after: Callable[[], object],
    thread_class: type,
    active_threads: dict[int, Any],
    started_event: object,
    new_event: object,
    abandoned: type[BaseException],
    deque: type[deque[Any]],
    run_method: object,
    random: object,
    local: type,
    quiet: Callable[[int], object],
    watch: Callable[[CodeType], object],
    on_native: Callable[[object, int], object],
    on_lock: Callable[[int, int, int, int, int], str],
    selection: int,
    checked: bool,
    native: bool,
    strict: bool,
    contexts: bool,
) -> dict[str, Any]: ...
def detach() -> None: ...
def on_instruction(code: CodeType, offset: int, /) -> object: ...
def on_start(code: CodeType, offset: int, /) -> object: ...
def place_number(code: CodeType, instruction: int, /) -> int: ...
def place_parts(place: int, /) -> tuple[CodeType, int] | None: ...
def recorded_names() -> tuple[dict[int, str], list[str]]: ...
def recording() -> bool: ...
def set_object(
    factory: Callable[[], object],
    answer: Callable[[object, BaseException | None], tuple[int, int, int, int, int]],
    name: str,
    methods: list[tuple[str, list[tuple[int, int]]]],
    /,
) -> int: ...
def set_test(function: Callable[[], object], name: str, /) -> int: ...
def stacks() -> dict[int, list[int]]: ...

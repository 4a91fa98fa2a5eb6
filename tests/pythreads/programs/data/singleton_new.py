"""A class whose ``__new__`` keeps one instance: two threads may create two."""

from __future__ import annotations

import threading


class Registry:
    instance: Registry | None = None
    names: dict[str, int]

    def __new__(cls) -> Registry:
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            cls.instance.names = {}
        return cls.instance


class LockedRegistry:
    instance: LockedRegistry | None = None
    creating = threading.Lock()
    names: dict[str, int]

    def __new__(cls) -> LockedRegistry:
        with cls.creating:
            if cls.instance is None:
                created = super().__new__(cls)
                created.names = {}
                cls.instance = created
            return cls.instance


def run(registry: type[Registry] | type[LockedRegistry]) -> None:
    registry.instance = None

    def enter(name: str) -> None:
        registry().names[name] = 1

    threads = [threading.Thread(target=enter, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(registry().names) == ["a", "b"], "a name was entered into a lost instance"


def test_buggy() -> None:
    run(Registry)


def test_mended() -> None:
    run(LockedRegistry)

"""Settings that are created on first use: two threads may create them twice."""

from __future__ import annotations

import threading


class Settings:
    instances = 0

    def __init__(self) -> None:
        Settings.instances += 1


class Lazy:
    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.lock = threading.Lock()

    def get_unsafely(self) -> Settings:
        if self.settings is None:
            self.settings = Settings()
        return self.settings

    def get(self) -> Settings:
        with self.lock:
            return self.get_unsafely()


def run(lazy: Lazy, safe: bool) -> None:
    found: list[Settings] = []
    get = lazy.get if safe else lazy.get_unsafely
    threads = [threading.Thread(target=lambda: found.append(get())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1], "two threads have different settings"


def test_buggy() -> None:
    run(Lazy(), safe=False)


def test_mended() -> None:
    run(Lazy(), safe=True)

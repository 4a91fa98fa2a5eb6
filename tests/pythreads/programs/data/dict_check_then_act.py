"""A register of names: the check for a taken name and the entry are two steps."""

from __future__ import annotations

import threading


class Names:
    def __init__(self) -> None:
        self.owners: dict[str, int] = {}

    def claim_unsafely(self, name: str, owner: int) -> bool:
        if name not in self.owners:
            self.owners[name] = owner
            return True
        return False

    def claim(self, name: str, owner: int) -> bool:
        return self.owners.setdefault(name, owner) == owner


def run(safe: bool) -> None:
    names = Names()
    winners: list[int] = []
    claim = names.claim if safe else names.claim_unsafely

    def compete(owner: int) -> None:
        if claim("printer", owner):
            winners.append(owner)

    threads = [threading.Thread(target=compete, args=(owner,)) for owner in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1, f"{len(winners)} owners of one name"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)

"""The distribution of tests to processes: that of ``--dist loadgroup``, at less cost.

That one goes through all tests that a process had whenever one of them ends, which takes a quarter
of a minute for ten thousand of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class Indexed(list[str]):
    """A list of different texts that knows where each of them is."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(texts)
        self.places = {text: place for place, text in enumerate(texts)}

    def index(self, text: str, *limits: SupportsIndex) -> int:
        return super().index(text, *limits) if limits else self.places[text]


class FewUnits(LoadGroupScheduling):  # type: ignore[misc]
    """The scheduler of ``--dist loadgroup``, which forgets groups whose tests have all ended."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Indexed(collection)

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(units[scope].values()):
            del units[scope]


def scheduler_for(config: Any, log: Any) -> FewUnits | None:
    """The scheduler for ``--dist loadgroup``; another mode has its own."""
    return FewUnits(config, log) if config.getvalue("dist") == "loadgroup" else None

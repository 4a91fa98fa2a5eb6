"""Arrow without pandas, which pyarrow would import with its first array of Python values."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import pyarrow as pa


class Hidden:
    """A finder of modules to which pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is hidden while pyarrow looks for it", name=name)


def arrow_without_pandas() -> None:
    """Let pyarrow look for pandas now, and not find it; the import takes a second of a processor.

    Only for processes of this package: afterwards pyarrow takes a pandas Series for any sequence,
    until something is converted to pandas. Nothing changes where pandas is imported already.
    """
    if "pandas" in sys.modules:
        return
    hidden = Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(hidden)

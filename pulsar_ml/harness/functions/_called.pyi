from typing import Any

APPLY: int
APPLY_NATIVE: int
CHECK: int
DESTROY: int

def keep_dropped(found: Any) -> None: ...

from typing import Any

APPLY: int
CHECK: int
DESTROY: int

def keep_dropped(found: Any) -> None: ...

APPLY: int
CHECK: int
DESTROY: int

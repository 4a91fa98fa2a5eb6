from pulsar_ml.harness.subjects.subject import Subject

BUILD_ID: str
MUTANTS: tuple[str, ...]
SUBJECTS: dict[str, Subject]

def select_mutant(mutant: str | None) -> None: ...
def fail_allocation_after(n: int) -> None: ...

"""The digest of a sweep's rows counts every column that the programs decide."""

from __future__ import annotations

import pytest

from pulsar_ml.campaign.store.schema import TRIALS
from tools.sweep_digest import OF_THE_RUN, compiler, differing, digest, stable

ROW: dict[str, object] = {name: name for name in TRIALS.names}


def test_the_columns_of_a_run_are_columns() -> None:
    assert set(TRIALS.names) > OF_THE_RUN


@pytest.mark.parametrize("name", TRIALS.names)
def test_a_column_counts_unless_it_is_of_the_run(name: str) -> None:
    other = stable(ROW | {name: "another"})
    assert (digest([other]) == digest([stable(ROW)])) is (name in OF_THE_RUN)
    assert len(differing([other], [stable(ROW)])) == (0 if name in OF_THE_RUN else 2)


def test_an_extension_names_its_compiler() -> None:
    assert "GCC" in compiler() or "clang" in compiler()

"""The corpus of a round: seeds of earlier trials from whose programs guided trials make theirs.

A seed stands for its program, and the decisions of its executions follow from it, so a corpus is a
few numbers: each executor makes the inputs again. A round's file holds its corpus, and nothing else
decides what a guided trial does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsar_ml.campaign.trial.trial import CLEAN, MIXTURE, is_guided

MOST_INPUTS = 16  # seeds of one suite
COLUMNS = ["chunk_id", "suite", "seed", "strategy", "verdict", "classes"]

Corpus = Mapping[str, tuple[int, ...]]


def corpus_of(directory: Path, waves: Sequence[str], first_guided: int) -> Corpus:
    """Choose the seeds of silent trials that saw the most classes, the most for each suite first.

    Chunks from ``first_guided`` on have a corpus. Only trials of programs that were drawn count.
    """
    best: dict[str, list[tuple[int, int]]] = {}
    for name in waves:
        rows = pq.read_table(directory / "trials" / name, columns=COLUMNS)
        kept = pc.and_(pc.equal(rows["strategy"], MIXTURE), pc.equal(rows["verdict"], CLEAN))
        for row in rows.filter(kept).to_pylist():
            if row["chunk_id"] >= first_guided and is_guided(row["seed"]):
                continue
            found = best.setdefault(row["suite"], [])
            found.append((-row["classes"], row["seed"]))
        for found in best.values():
            found.sort()
            del found[MOST_INPUTS:]
    return {suite: tuple(seed for _, seed in best[suite]) for suite in sorted(best)}

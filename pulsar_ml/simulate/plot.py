"""Plots of simulations: hit rate, storage reads and memory over time, with a line a variant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pulsar_ml.errors import UsageError, naming
from pulsar_ml.simulate.result import Result

PANELS = (
    ("hit_rate", "hit rate", 1.0),
    ("storage_entries", "entries from storage in the interval", 1.0),
    ("pinned_bytes", "MiB counted by the cache", 1 / (1 << 20)),
)


def plot(results: Sequence[Result], target: Path) -> None:
    """Draws the results of one workload into a file, whose extension selects the format.

    Raises UsageError when matplotlib is not installed or does not know the extension.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'pulsar_ml[plot]'") from None
    figure = Figure(figsize=(9, 9), layout="constrained")
    figure.suptitle(results[0].workload)
    for axes, (name, label, scale) in zip(
        figure.subplots(len(PANELS), sharex=True), PANELS, strict=True
    ):
        for result in results:
            values = [value * scale for value in result.timeline[name]]
            axes.plot(result.timeline["seconds"], values, label=result.variant, linewidth=1.2)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    axes.set_xlabel("virtual seconds")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=len(results))
    try:
        with naming(target):
            figure.savefig(target)
    except ValueError as error:
        raise UsageError(f"{target}: {error}") from None

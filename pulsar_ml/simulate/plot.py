"""Plots of simulations: figures over time with a line a variant, and memory against hits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_ml.errors import UsageError, naming
from pulsar_ml.simulate.choices import Choice, frontier, short
from pulsar_ml.simulate.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (
    ("hit_rate", "hit rate", 1.0),
    ("storage_entries", "entries from storage in the interval", 1.0),
    ("pinned_bytes", "MiB counted by the cache", 1 / (1 << 20)),
)


def plot(results: Sequence[Result], target: Path) -> None:
    """Draws the results of one workload into a file, whose extension selects the format.

    Raises UsageError when matplotlib is not installed or does not know the extension.
    """
    figure = new_figure(9)
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
    save(figure, target)


def plot_frontier(choices: Sequence[Choice], target: Path) -> None:
    """Draws the mean memory of choices against their hit rates, with a line through the best ones.

    Raises UsageError like :func:`plot`.
    """
    figure = new_figure(6)
    axes = figure.subplots()
    axes.set_title(choices[0].result.workload)
    best = frontier(choices)
    axes.plot([memory(each) for each in best], [hits(each) for each in best], linewidth=1.2)
    for choice in choices:
        is_today = choice is choices[0]
        axes.scatter(memory(choice), hits(choice), color="black" if is_today else "tab:blue")
        axes.annotate(
            short(choice.names[0]),
            (memory(choice), hits(choice)),
            fontsize=6,
            xytext=(4, 4),
            textcoords="offset points",
        )
    axes.set_xlabel("MiB counted by the cache, on average")
    axes.set_ylabel("hit rate")
    axes.grid(alpha=0.3)
    save(figure, target)


def memory(choice: Choice) -> float:
    return choice.result.mean_pinned_bytes / (1 << 20)


def hits(choice: Choice) -> float:
    return choice.result.hit_rate


def new_figure(height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'pulsar_ml[plot]'") from None
    return Figure(figsize=(9, height), layout="constrained")


def save(figure: Figure, target: Path) -> None:
    try:
        with naming(target):
            figure.savefig(target)
    except ValueError as error:
        raise UsageError(f"{target}: {error}") from None

"""A test that is explored in slices: each goes on where the one before stopped.

Slices of a sample have executions with numbers of their own, those of a search the part that is
left, so that no execution is repeated. Classes add up over the slices.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pulsar_ml.harness.budgets.passing import IsKnown, Met, is_enough, together
from pulsar_ml.harness.budgets.seen import Seen
from pulsar_ml.harness.budgets.split import Slice, share_words
from pulsar_ml.harness.engine import SEARCHES
from pulsar_ml.harness.functions.budget import NO_LIMIT, with_budget
from pulsar_ml.harness.search.explore import Exploration

MOST_CRASHES = 10  # known failures that end the process, behind which a test goes on
# Statistics of the engine that are the most of an execution, not a sum over them.
GREATEST = ("pct_steps", "threads", "longest", "exhausted", "unreduced")


@dataclass(slots=True)
class Course:
    """The slices of one test.

    Attributes:
        explore: explores a slice within ``executions`` and ``seconds``, behind the first one from
            ``first`` and ``part`` on; see :func:`pulsar_ml.harness.search.explore.explore`.
        is_known: says of a failure whether it is known.
        done: all slices together.
        last: the last slice; None when no more slices are of use.
        spent: the seconds of the slices.
    """

    explore: Callable[..., Exploration]
    is_known: IsKnown | None = None
    done: Exploration | None = None
    last: Slice | None = None
    spent: float = 0.0
    slices: int = 0
    crashes: int = 0
    seen: Seen = field(default_factory=Seen)
    latest: Slice | None = None  # also of a test that ended
    new: int = 0  # classes of the exploration that ended last

    def run(self, options: Mapping[str, Any], default: int) -> Exploration:
        """Explore within a test's own budget, of ``options`` or else ``default`` executions."""
        most = with_budget(options, default)["executions"]
        seconds = options.get("seconds")
        end = math.inf if seconds is None else time.monotonic() + seconds
        left = seconds
        while True:
            crashes = self.crashes
            done = self.explored(most - (self.done.executions if self.done else 0), left)
            over = done.executions >= most or time.monotonic() >= end
            if self.crashes == crashes or self.ended or over:  # only a lost process left more
                return done
            left = None if seconds is None else end - time.monotonic()

    def go_on(self, seconds: float) -> None:
        """Explore for one slice, unless no more are of use."""
        if self.ended:
            return
        started = time.monotonic()
        before = self.done.executions if self.done else 0
        done = self.explored(NO_LIMIT, seconds)
        self.slices += 1
        self.spent += time.monotonic() - started
        self.latest = Slice(done.executions - before, self.new)
        self.last = None if self.ended else self.latest

    def explored(self, executions: int, seconds: float | None) -> Exploration:
        """Explore once more; return all slices together."""
        so_far = self.done
        options: dict[str, Any] = {"executions": executions}
        if seconds is not None:
            options["seconds"] = seconds
        if self.is_known is not None:
            options["is_known"] = self.is_known
        if so_far is not None:
            options |= {"first": so_far.executions, "part": so_far.rest}
        found = self.explore(**options)
        if (failure := found.failure) is not None and failure.ended_process:
            found = self.behind(found)
        self.new = self.seen.add(found.classes, found.statistics["classes"])
        self.done = found if so_far is None else joined(so_far, found, self.seen)
        return self.done

    def behind(self, found: Exploration) -> Exploration:
        """A lost process, with its failure among those that were met if it is known.

        A process that ends while its strategy learns, before the first execution, would end so
        again.
        """
        assert found.failure is not None
        if self.is_known is None or not self.is_known(found.failure):
            return found
        self.crashes += 1 if found.executions else MOST_CRASHES
        return replace(found, met=(*found.met, Met(found.failure, found.executions)))

    @property
    def ended(self) -> bool:
        """True when no more slices are of use: it failed, or nothing is left to search."""
        done = self.done
        if done is None:
            return False
        known = {met.failure.signature for met in done.met}
        if done.failure is not None and done.failure.signature not in known:
            return True
        if done.strategy in SEARCHES:
            return bool(done.exhausted) or done.rest is None
        return self.crashes >= MOST_CRASHES or is_enough(done.met)

    def as_data(self) -> dict[str, Any]:
        """The share of a budget, for JSON."""
        return {
            "seconds": self.spent,
            "slices": self.slices,
            "last_executions": self.latest.executions if self.latest else 0,
            "last_new": self.latest.new if self.latest else 0,
            "ended": self.ended,
            "sentence": self.share(),
        }

    def share(self) -> str:
        """Describe what the test got of a budget, and what was new in its last slice."""
        return share_words(self.spent, self.slices, self.latest)


def joined(one: Exploration, other: Exploration, seen: Seen) -> Exploration:
    """Two slices of a test as one exploration, whose classes are those of ``seen``.

    ``once`` and ``twice`` are sums: bounds from above, for a class may be in both slices.
    """
    statistics = {
        name: max(value, other.statistics[name])
        if name in GREATEST
        else value + other.statistics[name]
        for name, value in one.statistics.items()
    }
    statistics["classes"] = seen.count
    bounds = Counter(one.bounds)
    bounds.update(other.bounds)
    failure = other.failure
    known = {met.failure.signature for met in (*one.met, *other.met)}
    if one.failure is not None and (failure is None or failure.signature in known):
        failure = one.failure
    return replace(
        other,
        executions=one.executions + other.executions,
        seconds=one.seconds + other.seconds,
        statistics=statistics,
        failure=failure,
        rechecked=one.rechecked + other.rechecked,
        bounds=dict(bounds),
        classes=seen.hashes,
        assumption=other.assumption or one.assumption,
        passed_over=tuple(dict.fromkeys((*one.passed_over, *other.passed_over))),
        one_step=tuple(dict.fromkeys((*one.one_step, *other.one_step))),
        locks=tuple(dict.fromkeys((*one.locks, *other.locks))),
        met=together(one.met, other.met, one.executions),
    )

"""What the scripts here share: times of work, in the form of `FigureResult` in ../report/src/results.rs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def figures(work: dict[str, Callable[[], Any]], rounds: int) -> list[dict[str, Any]]:
    """The median of each kind of work, and the 10th and 90th percentile."""
    found = []
    for what, one in work.items():
        taken = times(rounds, one)
        spread = [taken[round((rounds - 1) * part)] for part in (0.1, 0.9)]
        median = taken[rounds // 2]
        found.append({"what": what, "unit": "ns", "median": median, "spread": spread, "floor": None})
    return found


def times(rounds: int, work: Callable[[], Any]) -> list[int]:
    """The time of each round in nanoseconds, fastest first. Results are dropped after the clock has stopped."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        kept = work()
        taken.append(time.perf_counter_ns() - start)
        del kept
    return sorted(taken)

"""What must hold at the end of a soak, each as a claim that held or did not."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

GROWTH_MB = 10.0
"""How much a process may grow while it leads undisturbed: caches fill, and the allocator keeps what it got."""

WARM_SECONDS = 8 * 60.0
"""Events are remembered for six minutes after their last repeat, and forgotten within one more."""
JUDGED_SECONDS = 5 * 60.0
"""A shorter time says nothing about growth."""


class Claim(NamedTuple):
    """Something that must hold."""

    what: str
    holds: bool
    detail: str = ""


class Sample(NamedTuple):
    """Memory of a process at a time."""

    seconds: float
    rss_mb: float


def memory_is_flat(samples: Sequence[Sample]) -> Claim:
    """By the straight line through all samples of one leader, once what it remembers for a while has filled up."""
    what = f"memory is flat (within {GROWTH_MB:.0f} MB)"
    settled = [sample for sample in samples if sample.seconds - samples[0].seconds >= WARM_SECONDS]
    times = [sample.seconds for sample in settled]
    if len(times) < 2 or times[-1] - times[0] < JUDGED_SECONDS:
        return Claim(
            f"{what}: NOT JUDGED", True, f"no replica led for {(WARM_SECONDS + JUDGED_SECONDS) / 60:.0f} minutes"
        )
    slope = statistics.linear_regression(times, [sample.rss_mb for sample in settled]).slope
    growth = slope * (times[-1] - times[0])
    detail = f"{settled[0].rss_mb:.0f} MB, grew by {growth:.1f} MB in {(times[-1] - times[0]) / 60:.0f} minutes"
    return Claim(what, growth <= GROWTH_MB, detail)


def cache_is_true(replica: str, cache: Mapping[str, Any], differences: int, truth: Mapping[str, Any]) -> Claim:
    """Both by node: its pods, and what they ask for."""
    wrong = [
        f"{node}: cached {_seen(cache.get(node))}, true is {_seen(truth.get(node))}"
        for node in sorted({*cache, *truth})
        if _seen(cache.get(node)) != _seen(truth.get(node))
    ]
    found = "; ".join(wrong[:3]) or f"{len(truth)} nodes; {differences} differences by its own comparison"
    return Claim(f"the cache of {replica} is true", not wrong and differences == 0, found)


def _seen(node: Mapping[str, Any] | None) -> tuple[list[str], int, int]:
    if node is None:
        return [], 0, 0
    requested = node["requested"]
    pods = sorted([*node["pods"], *node.get("assumedPods", ())])
    return pods, requested.get("cpu", 0), requested.get("memory", 0)

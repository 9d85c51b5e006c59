"""What must hold at the end of a soak, each as a claim that held or did not."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

GROWTH_MB = 10.0
"""How much a process may grow while it leads undisturbed: caches fill, and the allocator keeps what it got."""


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
    """By the straight line through all samples but those of the first quarter, in which caches fill."""
    settled = samples[len(samples) // 4 :]
    if len(settled) < 3:
        return Claim("memory is flat", False, "nobody led for long enough")
    times = [sample.seconds for sample in settled]
    slope = statistics.linear_regression(times, [sample.rss_mb for sample in settled]).slope
    growth = slope * (times[-1] - times[0])
    detail = f"{settled[0].rss_mb:.0f} MB, grew by {growth:.1f} MB in {(times[-1] - times[0]) / 60:.0f} minutes"
    return Claim(f"memory is flat (within {GROWTH_MB:.0f} MB)", growth <= GROWTH_MB, detail)


def belief_is_truth(replica: str, belief: Mapping[str, Any], differences: int, truth: Mapping[str, Any]) -> Claim:
    """Both by node: its pods, and what they ask for."""
    wrong = [
        f"{node}: believed {_seen(belief.get(node))}, true is {_seen(truth.get(node))}"
        for node in sorted({*belief, *truth})
        if _seen(belief.get(node)) != _seen(truth.get(node))
    ]
    told = "; ".join(wrong[:3]) or f"{len(truth)} nodes; {differences} differences by its own comparison"
    return Claim(f"what {replica} believes is true", not wrong and differences == 0, told)


def _seen(node: Mapping[str, Any] | None) -> tuple[list[str], int, int]:
    if node is None:
        return [], 0, 0
    requested = node["requested"]
    pods = sorted([*node["pods"], *node.get("assumedPods", ())])
    return pods, requested.get("cpu", 0), requested.get("memory", 0)

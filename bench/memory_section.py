"""What a cluster takes in memory, what an attempt holds while it is being bound, and what an hour of churn leaves."""

from __future__ import annotations

from rich.console import Console

from bench import bars, churn, clusters, loop, measure
from bench.tables import verdict


def memory(console: Console, rounds: int) -> dict[str, float]:
    held = round(measure.memory_mb(), 1)
    console.print(
        f"state of 5,000 nodes and 50,000 pods: {held} MB (bar {bars.STATE_MB} MB, {verdict(held <= bars.STATE_MB)})"
    )
    results = {"state/memory-mb/5000x50000": held}
    for kind in clusters.PLACED:
        each, bar = round(loop.under_way_kb(kind, 5000), 1), bars.UNDER_WAY_KB
        console.print(f"{kind}, while a binding is written: {each} kB (bar {bar} kB, {verdict(each <= bar)})")
        results[f"state/under-way-kb/{kind}/5000"] = each
    return results


def hour_of_churn(console: Console, rounds: int) -> dict[str, float]:
    before, after = (round(held, 1) for held in churn.memory_mb())
    console.print(f"an hour of churn: {before} MB after {churn.WARM_SECONDS // 60} minutes, {after} MB at the end")
    half, whole = (round(held, 1) for held in churn.memory_of_kinds_mb())
    console.print(f"no two pods alike: {half} MB after 1,500 pods that came and went, {whole} MB after 3,000")
    return {
        "loop/churn-mb-before/1h": before,
        "loop/churn-mb-after/1h": after,
        "loop/kinds-mb-before/1500": half,
        "loop/kinds-mb-after/3000": whole,
    }

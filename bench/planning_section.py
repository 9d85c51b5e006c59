"""How plans stand to their bars. The same work gives the same plan, so nothing is measured twice."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from bench import bars, moving, openb, planning, planning_clusters
from bench.tables import verdict

_SPECIFIC = ("gpuspec25", "gpuspec33")


def plans(console: Console, rounds: int) -> dict[str, float]:
    """The queue, the bound, the pool and moves; the traces only if their folder is named."""
    results = _pool(console) | _large_bound(console) | _savings(console) | _verified(console)
    traces = planning.folder()
    if traces is None:
        console.print("openb traces: not measured, as --traces names no folder with them")
        return results
    return results | _trace_bound(console, traces) | _freed(console, traces) | _queues(console, traces)


def _pool(console: Console) -> dict[str, float]:
    found = planning.cheapest_pool(2_000)
    is_met = found.gap <= bars.POOL_PERCENT and found.seconds <= bars.POOL_SECONDS and found.saved >= bars.POOL_SAVED
    console.print(
        f"pool of 2,000 pods and 42 types: {found.gap:.2f} % above the bound, {found.saved:.1f} % below one type, "
        f"{found.seconds:.1f} s of CPU (bars {bars.POOL_PERCENT} %, {bars.POOL_SAVED} %, {bars.POOL_SECONDS} s, "
        f"{verdict(is_met)})"
    )
    return {
        "planning/pool-gap-percent/2000": round(found.gap, 2),
        "planning/pool-saved-percent/2000": round(found.saved, 1),
        "planning/pool-seconds/2000": round(found.seconds, 1),
    }


def _large_bound(console: Console) -> dict[str, float]:
    nodes, pods, kinds = planning.LARGE
    return _bound(
        console,
        f"{nodes:,} nodes, {pods:,} pods of {kinds} kinds",
        "large",
        planning.bound_of_large_cluster(),
        bars.BOUND_LARGE_SECONDS,
    )


def _trace_bound(console: Console, traces: Path) -> dict[str, float]:
    return _bound(console, "the openb nodes", "openb", planning.bound_of_trace(traces), bars.BOUND_SECONDS)


def _bound(console: Console, what: str, key: str, spent: float, bar: float) -> dict[str, float]:
    console.print(f"bound for {what}: {spent:.1f} s of CPU (bar {bar} s, {verdict(spent <= bar)})")
    return {f"planning/bound-seconds/{key}": round(spent, 2)}


def _queues(console: Console, traces: Path) -> dict[str, float]:
    results: dict[str, float] = {}
    for trace in openb.traces(traces):
        points = bars.QUEUE_POINTS_SPECIFIC if trace in _SPECIFIC else bars.QUEUE_POINTS
        seconds = bars.QUEUE_DEFAULT_SECONDS if trace == "default" else bars.QUEUE_SECONDS
        for percent in planning.LOADS:
            found = planning.whole_queue(traces, trace, percent)
            is_met = found.gap <= points and found.seconds <= seconds
            console.print(
                f"queue of {trace}, {percent} % arrived: {found.gap:.3f} points below the bound, "
                f"{found.seconds:.1f} s of CPU (bars {points} points, {seconds} s, {verdict(is_met)})"
            )
            results[f"planning/queue-gap-points/{trace}-{percent}"] = round(found.gap, 3)
            results[f"planning/queue-seconds/{trace}-{percent}"] = round(found.seconds, 1)
    return results


def _savings(console: Console) -> dict[str, float]:
    """Nodes that can go, for the most money and for shares of it with the fewest moves."""
    results: dict[str, float] = {}
    for name, median in (("small", planning_clusters.SMALL), ("big", planning_clusters.BIG)):
        found = moving.saving(median)
        is_met = found.share >= bars.SAVED_SHARE and found.seconds <= bars.SAVED_SECONDS
        console.print(
            f"consolidate 500 nodes, {name} pods: {found.share:.1%} of what can be saved, {found.seconds:.1f} s of CPU "
            f"(bars {bars.SAVED_SHARE:.1%}, {bars.SAVED_SECONDS} s, {verdict(is_met)})"
        )
        results[f"planning/saved-share/{name}"] = round(found.share, 4)
        results[f"planning/saved-seconds/{name}"] = round(found.seconds, 1)
        for percent in moving.SHARES:
            found = moving.saving(median, save=percent)
            results |= _moves(console, f"save {percent} %, {name} pods", f"{name}-{percent}", found, bars.SAVED_MOVES)
    found = moving.saving(planning_clusters.SMALL, 5_000, save=moving.SHARES[0])
    is_met = found.seconds <= bars.FIRST_PLAN_SECONDS
    what = f"save {moving.SHARES[0]} % of 5,000 nodes: {found.share:.3f} times the bound"
    console.print(f"{what}, {found.seconds:.1f} s of CPU (bar {bars.FIRST_PLAN_SECONDS} s, {verdict(is_met)})")
    return results | {"planning/plan-seconds/5000": round(found.seconds, 1)}


def _freed(console: Console, traces: Path) -> dict[str, float]:
    results: dict[str, float] = {}
    for count in moving.COUNTS:
        found = moving.freeing(traces, count)
        results |= _moves(console, f"free {count} nodes of openb", f"openb-{count}", found, bars.FREED_MOVES)
    return results


def _moves(console: Console, what: str, key: str, found: moving.MovedPlan, bar: float) -> dict[str, float]:
    console.print(
        f"{what}: {found.moves} moves, {found.share:.3f} times the bound, {found.seconds:.1f} s of CPU "
        f"(bar {bar} times, {verdict(found.share <= bar)})"
    )
    return {f"planning/moves-by-bound/{key}": round(found.share, 3)}


def _verified(console: Console) -> dict[str, float]:
    spent = moving.verifying()
    bar = f"bar {bars.VERIFIED_SECONDS} s, {verdict(spent <= bars.VERIFIED_SECONDS)}"
    console.print(f"{moving.MOVES:,} moves decided by the engine: {spent:.1f} s of CPU ({bar})")
    return {"planning/verified-seconds/10000": round(spent, 2)}

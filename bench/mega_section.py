"""What the largest cluster costs, in words and against the bars."""

from __future__ import annotations

import statistics

from rich.console import Console

from bench import bars, groups, mega
from bench.loop import Waiting
from bench.tables import verdict


def largest_cluster(console: Console, rounds: int) -> dict[str, float]:
    """Deciding, asking and looking at 130,000 nodes; then events while very many pods wait, and a large gang."""
    results: dict[str, float] = {}

    def tell(what: str, value: float, bar: float, unit: str) -> None:
        results[f"mega/{what.replace(' ', '-')}-{unit}/{mega.NODES}"] = round(value, 2)
        console.print(f"mega, {what}: {value:,.2f} {unit} (bar {bar:,} {unit}, {verdict(value <= bar)})")

    cluster = mega.MegaCluster()
    tell("state", cluster.held_mb, bars.MEGA_STATE_MB, "MB")
    decisions: dict[str, list[float]] = {kind: [] for kind in bars.MEGA_US}
    for _ in range(rounds):  # in turns: a noisy minute must not be the fate of one kind
        for kind, spent in decisions.items():
            spent.append(cluster.deciding(kind))
    for kind, spent in decisions.items():
        tell(kind, statistics.median(spent), bars.MEGA_US[kind], "us")
    for kind, ms in cluster.explaining():
        tell(f"explain {kind}", ms, bars.MEGA_EXPLAIN_MS, "ms")
    ms, size = cluster.page()
    tell("page", ms, bars.MEGA_PAGE_MS, "ms")
    tell("map", size, bars.MEGA_MAP_MB, "MB")
    del cluster
    waiting = Waiting(mega.WAITING, mega.WAITING_KINDS, mega.NODES)
    for what, event in (
        ("node label", waiting.node_label_changes),
        ("small node", waiting.small_node_comes),
        ("other pod bound", waiting.other_pod_is_bound),
    ):
        tell(f"{what} while pods wait", statistics.median(event() for _ in range(5)) / 1000, bars.MEGA_EVENT_MS, "ms")
    del waiting
    gang = statistics.median(groups.gang_ms(mega.GANG, mega.NODES) for _ in range(rounds))
    tell("gang", gang / 1000, bars.MEGA_GANG_SECONDS, "s")
    return results

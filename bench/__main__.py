"""Runs every benchmark, prints a table with the bars, writes bench/latest.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import clusters, measure

RUNS = 5
SIZES = (5000, 15_000)
LARGE_FACTOR = 3.5

BARS_US = {
    "basic": 80,
    "node-affinity": 100,
    "spread-soft": 250,
    "spread-hard": 250,
    "preferred-affinity": 300,
    "required-anti-affinity": 300,
    "fills-a-node": 80,
    "fits-nowhere": 300,
    "first-of-kind": 1500,
    "preemption": 8000,
}
KUBE_SCHEDULER_US = {
    "basic": {5000: 27_000, 15_000: 89_000},
    "spread-soft": {5000: 39_000, 15_000: 126_000},
    "spread-hard": {5000: 36_000, 15_000: 104_000},
    "preferred-affinity": {5000: 32_000, 15_000: 110_000},
    "required-anti-affinity": {5000: 41_000, 15_000: 118_000},
}
"""kube-scheduler v1.36.4 with all nodes scored, schedulePod and assume alone, on the same kind of machine."""

MEMORY_BAR_MB = 350


def measured(name: str, nodes: int) -> float:
    """One benchmark, in microseconds of CPU per pod."""
    if name in clusters.PLACED:
        return measure.median_of(RUNS, lambda: measure.placing(name, nodes))
    if name == "first-of-kind":
        return measure.median_of(RUNS, lambda: measure.first_of_kind(nodes))
    if name == "fits-nowhere":
        return measure.median_of(3, lambda: measure.fitting_nowhere(nodes))
    return measure.median_of(3, lambda: measure.preempting(nodes))


def main(wanted: list[str]) -> None:
    table = Table(title="CPU microseconds per pod, schedule + assume, every node evaluated, one core")
    for column in ("benchmark", "nodes", "us per pod", "bar", "", "kube-scheduler", "ratio"):
        table.add_column(column, justify="left" if column == "benchmark" else "right")
    results: dict[str, float] = {}
    for name, bar in BARS_US.items():
        if wanted and name not in wanted:
            continue
        for nodes in SIZES:
            value = results[f"engine/{name}/{nodes}"] = round(measured(name, nodes), 1)
            limit = bar if nodes == SIZES[0] else bar * LARGE_FACTOR
            theirs = KUBE_SCHEDULER_US.get(name, {}).get(nodes)
            table.add_row(
                name,
                f"{nodes:,}",
                f"{value:,.1f}",
                f"{limit:,.0f}",
                "ok" if value <= limit else "[red]over[/red]",
                f"{theirs:,}" if theirs else "",
                f"{theirs / value:,.0f}x" if theirs else "",
            )
    console = Console(width=110)
    console.print(table)
    if not wanted or "memory" in wanted:
        held = results["state/memory-mb/5000x50000"] = round(measure.memory_mb(), 1)
        verdict = "ok" if held <= MEMORY_BAR_MB else "over"
        console.print(f"state of 5,000 nodes and 50,000 pods: {held} MB (bar {MEMORY_BAR_MB} MB, {verdict})")
    path = Path(__file__).with_name("latest.json")
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print(f"written to {path.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main(sys.argv[1:])

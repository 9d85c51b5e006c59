"""Runs every benchmark, prints a table with the bars, writes bench/latest.json.

Machines are noisy in bursts, so the benchmarks take turns: each is measured once per round, and the median counts.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench import clusters, measure

ROUNDS = 7
SIZES = (5000, 15_000)
LARGE_FACTOR = 3.5
MEMORY_BAR_MB = 350

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


def benchmarks(wanted: list[str]) -> dict[tuple[str, int], Callable[[], float]]:
    """What to measure, by name and number of nodes."""
    special = {
        "first-of-kind": measure.first_of_kind,
        "fits-nowhere": measure.fitting_nowhere,
        "preemption": measure.preempting,
    }
    chosen = [name for name in BARS_US if not wanted or name in wanted]
    return {
        (name, nodes): partial(measure.placing, name, nodes)
        if name in clusters.PLACED
        else partial(special[name], nodes)
        for nodes in SIZES
        for name in chosen
    }


def main(wanted: list[str]) -> None:
    console = Console(width=110)
    turns = benchmarks(wanted)
    samples: dict[tuple[str, int], list[float]] = {key: [] for key in turns}
    for _ in track(range(ROUNDS), description="rounds", console=Console(stderr=True)):
        for key, run in turns.items():
            samples[key].append(run())
    medians = {key: statistics.median(values) for key, values in samples.items()}
    results = {f"engine/{name}/{nodes}": round(value, 1) for (name, nodes), value in medians.items()}
    console.print(_table(medians))
    if not wanted or "memory" in wanted:
        held = results["state/memory-mb/5000x50000"] = round(measure.memory_mb(), 1)
        verdict = "ok" if held <= MEMORY_BAR_MB else "over"
        console.print(f"state of 5,000 nodes and 50,000 pods: {held} MB (bar {MEMORY_BAR_MB} MB, {verdict})")
    path = Path(__file__).with_name("latest.json")
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print("written to bench/latest.json")


def _table(medians: dict[tuple[str, int], float]) -> Table:
    title = f"CPU microseconds per pod: schedule + assume, every node evaluated, one core, median of {ROUNDS}"
    table = Table(title=title)
    for column in ("benchmark", "nodes", "us per pod", "bar", "", "kube-scheduler", "ratio"):
        table.add_column(column, justify="left" if column == "benchmark" else "right")
    for (name, nodes), value in medians.items():
        limit = BARS_US[name] * (1 if nodes == SIZES[0] else LARGE_FACTOR)
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
    return table


if __name__ == "__main__":
    main(sys.argv[1:])

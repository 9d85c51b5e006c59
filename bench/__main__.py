"""Runs every benchmark, prints a table with the bars, writes bench/latest.json.

Machines are noisy in bursts, so the benchmarks take turns: each is measured once per round, and the median counts.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench import churn, clusters, devices, loop, measure, simulating

ROUNDS = 7
SIMULATIONS = 3
SIZES = (5000, 15_000)
LARGE_FACTOR = 3.5
MEMORY_BAR_MB = 350
WAITING_PODS = 100_000

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
LOOP_BARS_US = {"basic": 200, "spread-soft": 400, "preferred-affinity": 400}
EVENT_BAR_US = 50_000
EVENTS: dict[str, Callable[[loop.Waiting], float]] = {
    "node-label": loop.Waiting.node_label_changes,
    "small-node": loop.Waiting.small_node_comes,
    "other-pod-bound": loop.Waiting.other_pod_is_bound,
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


def loops(wanted: list[str]) -> dict[tuple[str, int], Callable[[], float]]:
    """The whole loop, by kind of pod and number of nodes."""
    return {
        (name, SIZES[0]): partial(loop.binding, name, SIZES[0])
        for name in LOOP_BARS_US
        if not wanted or "loop" in wanted
    }


def events(wanted: list[str]) -> dict[tuple[str, int], Callable[[], float]]:
    """Events that help nobody, by what happens and number of waiting pods; the pods begin to wait only once."""
    waiting = cache(lambda: loop.Waiting(WAITING_PODS))
    return {
        (name, WAITING_PODS): partial(lambda event: event(waiting()), event)
        for name, event in EVENTS.items()
        if not wanted or "waiting" in wanted
    }


def main(wanted: list[str]) -> None:
    console = Console(width=110)
    groups = {"engine": benchmarks(wanted), "loop": loops(wanted), "waiting": events(wanted)}
    medians = _medians({(group, *key): run for group, turns in groups.items() for key, run in turns.items()})
    results = {f"{group}/{name}/{size}": round(value, 1) for (group, name, size), value in medians.items()}
    engine = {(name, size): value for (group, name, size), value in medians.items() if group == "engine"}
    if engine:
        console.print(_table(engine))
    if len(engine) < len(medians):
        console.print(_loop_table({key: value for key, value in medians.items() if key[0] != "engine"}))
    if not wanted or "memory" in wanted:
        held = results["state/memory-mb/5000x50000"] = round(measure.memory_mb(), 1)
        verdict = "ok" if held <= MEMORY_BAR_MB else "over"
        console.print(f"state of 5,000 nodes and 50,000 pods: {held} MB (bar {MEMORY_BAR_MB} MB, {verdict})")
    if not wanted or "churn" in wanted:
        before, after = (round(held, 1) for held in churn.memory_mb())
        results["loop/churn-mb-before/1h"], results["loop/churn-mb-after/1h"] = before, after
        console.print(f"an hour of churn: {before} MB after {churn.WARM_SECONDS // 60} minutes, {after} MB at the end")
        before, after = (round(held, 1) for held in churn.memory_of_kinds_mb())
        results["loop/kinds-mb-before/1500"], results["loop/kinds-mb-after/3000"] = before, after
        console.print(f"no two pods alike: {before} MB after 1,500 pods that came and went, {after} MB after 3,000")
    if not wanted or "simulate" in wanted:
        for kind in ("pods", "deployments"):
            spent = round(statistics.median(simulating.cpu_seconds(kind) for _ in range(SIMULATIONS)), 1)
            results[f"simulate/{kind}-seconds/5000x50000"] = spent
            verdict = "ok" if spent <= simulating.BAR_SECONDS else "over"
            console.print(f"simulate, {kind}: {spent} s of CPU (bar {simulating.BAR_SECONDS} s, {verdict})")
    if not wanted or "devices" in wanted:
        per_pod = devices.growing()
        results["devices/first-thousand/5000x8"], results["devices/last-thousand/5000x8"] = (
            round(per_pod[0], 1),
            round(per_pod[-1], 1),
        )
        verdict = "ok" if max(per_pod) <= devices.BAR_US else "over"
        console.print(
            f"claims for one or two of 40,000 devices: {per_pod[0]:,.0f} us per pod, {per_pod[-1]:,.0f} us with "
            f"{len(per_pod) - 1},000 claims allocated (bar {devices.BAR_US:,} us, {verdict})"
        )
    path = Path(__file__).with_name("latest.json")
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print("written to bench/latest.json")


def _medians(turns: Mapping[tuple[str, str, int], Callable[[], float]]) -> dict[tuple[str, str, int], float]:
    samples: dict[tuple[str, str, int], list[float]] = {key: [] for key in turns}
    for _ in track(range(ROUNDS), description="rounds", console=Console(stderr=True)):
        for key, run in turns.items():
            samples[key].append(run())
    return {key: statistics.median(values) for key, values in samples.items()}


def _loop_table(medians: dict[tuple[str, str, int], float]) -> Table:
    """Loops per pod on so many nodes, events with so many pods waiting."""
    title = "CPU microseconds: pop to confirmed per pod (loop), an event that helps nobody (waiting)"
    table = Table(title=title)
    for column in ("benchmark", "nodes or pods", "us", "bar", ""):
        table.add_column(column, justify="left" if column == "benchmark" else "right")
    for (group, name, size), value in medians.items():
        limit = LOOP_BARS_US[name] if group == "loop" else EVENT_BAR_US
        verdict = "ok" if value <= limit else "[red]over[/red]"
        table.add_row(f"{group}/{name}", f"{size:,}", f"{value:,.1f}", f"{limit:,}", verdict)
    return table


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

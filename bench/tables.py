"""The tables that `make bench` prints for what is measured in rounds."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from bench import bars


def engine_table(medians: Mapping[tuple[str, int], float], rounds: int) -> Table:
    """Deciding alone, next to kube-scheduler's figures."""
    title = f"CPU microseconds per pod: schedule + assume, every node evaluated, one core, median of {rounds}"
    table = Table(title=title)
    for column in ("benchmark", "nodes", "us per pod", "bar", "", "kube-scheduler", "ratio"):
        table.add_column(column, justify="left" if column == "benchmark" else "right")
    for (name, nodes), value in medians.items():
        limit = bars.ENGINE_US[name] * (1 if nodes == bars.SIZES[0] else bars.LARGE_FACTOR)
        theirs = bars.KUBE_SCHEDULER_US.get(name, {}).get(nodes)
        table.add_row(
            name,
            f"{nodes:,}",
            f"{value:,.1f}",
            f"{limit:,.0f}",
            verdict(value <= limit),
            f"{theirs:,}" if theirs else "",
            f"{theirs / value:,.0f}x" if theirs else "",
        )
    return table


def loop_table(medians: Mapping[tuple[str, str, int], float]) -> Table:
    """Loops per pod on so many nodes, events with so many pods waiting."""
    title = "CPU microseconds: pop to confirmed per pod (loop), an event that helps no pod (waiting)"
    table = Table(title=title)
    for column in ("benchmark", "nodes or pods", "us", "bar", ""):
        table.add_column(column, justify="left" if column == "benchmark" else "right")
    for (group, name, size), value in medians.items():
        limit = bars.LOOP_US[name] if group == "loop" else bars.EVENT_US[name]
        table.add_row(f"{group}/{name}", f"{size:,}", f"{value:,.1f}", f"{limit:,}", verdict(value <= limit))
    return table


def verdict(is_met: bool) -> str:
    return "ok" if is_met else "[red]over[/red]"

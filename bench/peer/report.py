"""The table of one workload: both schedulers, medians of all rounds, ratios first."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from rich.table import Table

from bench.peer.cases import Workload
from bench.peer.measurement import Result
from bench.peer.schedulers import KUBE_SCHEDULER, KUBESCHED

_COLUMNS: dict[str, Callable[[Result], float]] = {
    "pods/s": lambda result: result.pods_per_second,
    "CPU ms/pod": lambda result: result.cpu_ms_per_pod,
    "p50 s": lambda result: result.p50,
    "p99 s": lambda result: result.p99,
    "RSS MB": lambda result: result.rss_mb,
    "peak MB": lambda result: result.peak_rss_mb,
    "attempts/pod": lambda result: sum(result.attempts.values()) / max(1, result.pods),
}


def side_by_side(workload: Workload, results: Mapping[str, Sequence[Result]]) -> Table:
    sizes = ", ".join(f"{name}={value}" for name, value in workload.parameters.items())
    table = Table(title=f"{workload.full_name} ({sizes}), median of {len(next(iter(results.values())))}")
    table.add_column("")
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    if KUBESCHED in results and KUBE_SCHEDULER in results:
        ours, theirs = results[KUBESCHED], results[KUBE_SCHEDULER]
        ratios = (_ratio(_median(ours, value), _median(theirs, value)) for value in _COLUMNS.values())
        table.add_row("kubesched / kube-scheduler", *ratios)
    for kind, runs in results.items():
        table.add_row(kind, *(f"{_median(runs, value):,.3g}" for value in _COLUMNS.values()))
    return table


def _median(runs: Sequence[Result], value: Callable[[Result], float]) -> float:
    return statistics.median(value(run) for run in runs)


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}" if theirs else ""

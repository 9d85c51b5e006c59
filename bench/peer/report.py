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
    "others' CPU": lambda result: result.others_cpu_ms_per_pod,
    "p50 s": lambda result: result.p50,
    "p99 s": lambda result: result.p99,
    "seen p50": lambda result: result.seen_p50,
    "seen p99": lambda result: result.seen_p99,
    "RSS MB": lambda result: result.rss_mb,
    "peak MB": lambda result: result.peak_rss_mb,
    "attempts/pod": lambda result: sum(result.attempts.values()) / max(1, result.pods),
}

_SUMMARY = ("pods/s", "CPU ms/pod", "RSS MB")


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


def queue_moves(results: Mapping[str, Sequence[Result]]) -> Table:
    """Pods that came into each queue, by event, in the last round: what woke how many."""
    table = Table(title="pods into queues, by event")
    table.add_column("queue and event")
    for kind in results:
        table.add_column(kind, justify="right")
    last = [runs[-1].queued for runs in results.values()]
    for name in sorted({name for queued in last for name in queued}):
        table.add_row(name, *(f"{queued.get(name, 0):,}" for queued in last))
    return table


def summary(measured: Sequence[tuple[Workload, Mapping[str, Sequence[Result]]]]) -> Table:
    """One line for each workload that both have done: how many times as many pods, for which share of the CPU."""
    table = Table(title="kubesched beside kube-scheduler: ratios, then ours and theirs")
    table.add_column("workload")
    for column in ("pods/s", "CPU", "memory", "pods/s", "CPU ms/pod", "MB"):
        table.add_column(column, justify="right")
    for workload, results in measured:
        ours, theirs = results.get(KUBESCHED), results.get(KUBE_SCHEDULER)
        if ours and theirs:
            pairs = [(_median(ours, _COLUMNS[name]), _median(theirs, _COLUMNS[name])) for name in _SUMMARY]
            ratios = (_ratio(*pair) for pair in pairs)
            table.add_row(workload.full_name, *ratios, *(f"{mine:,.3g} | {other:,.3g}" for mine, other in pairs))
    return table

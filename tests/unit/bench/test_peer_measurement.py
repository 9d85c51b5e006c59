from __future__ import annotations

import io

import pytest
from bench.peer.cases import Workload
from bench.peer.executor import seconds
from bench.peer.measurement import Result, quantile
from bench.peer.report import side_by_side
from rich.console import Console


def result(**changes: float) -> Result:
    usual = {"pods": 100, "seconds": 2.0, "cpu_seconds": 0.5, "rss_mb": 100, "peak_rss_mb": 110, "p50": 0.1, "p99": 0.4}
    return Result(queued={}, attempts={"scheduled": 100, "unschedulable": 50}, **usual | changes)  # type: ignore[arg-type]


def test_rates_are_by_pod() -> None:
    assert result().pods_per_second == 50
    assert result().cpu_ms_per_pod == 5
    assert result(others_cpu_seconds=3.0).others_cpu_ms_per_pod == 30


def test_nothing_bound_is_no_division_by_zero() -> None:
    nothing = result(pods=0, seconds=0)
    assert (nothing.pods_per_second, nothing.cpu_ms_per_pod) == (0, 0)


def test_quantiles_are_values_that_were_measured() -> None:
    ordered = [float(value) for value in range(1, 101)]
    assert (quantile(ordered, 0.5), quantile(ordered, 0.99), quantile([3.0], 0.99), quantile([], 0.5)) == (
        51,
        100,
        3,
        0,
    )


def test_durations_are_written_as_in_go() -> None:
    assert (seconds("10s"), seconds("1m30s"), seconds("500ms"), seconds("1.5h")) == (10, 90, 0.5, 5400)
    with pytest.raises(ValueError, match="not a duration"):
        seconds("soon")


def test_table_has_ratios_of_medians_first() -> None:
    workload = Workload(None, "Busy", "small", [], {"nodes": 3}, {})  # type: ignore[arg-type]
    ours = [result(cpu_seconds=cpu) for cpu in (0.1, 0.2, 9.0)]
    theirs = [result(cpu_seconds=cpu) for cpu in (0.7, 0.8, 0.9)]
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(side_by_side(workload, {"kubesched": ours, "kube-scheduler": theirs}))
    lines = console.export_text().splitlines()
    assert "Busy/small (nodes=3), median of 3" in lines[0]
    ratios = next(line for line in lines if "kubesched / kube-scheduler" in line)
    assert [cell.strip() for cell in ratios.split("│")[2:4]] == ["1.00", "0.25"]

"""Metrics as plain numbers: one thread counts and the same thread tells, so nothing needs a lock.

A histogram of the client library takes several microseconds for each observation, and an attempt makes a dozen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from kubesched.daemon.metrics.catalogue import Series
from kubesched.daemon.metrics.exposition import number

UNEXPECTED = "unexpected"
"""What a label says whose value is not allowed."""


class Number:
    """A counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        self.value = value


class Distribution:
    """A histogram: how many observations are up to each bound, and their sum."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, amount: float) -> None:
        self._counts[bisect_left(self._bounds, amount)] += 1
        self.sum += amount

    def buckets(self) -> list[tuple[str, float]]:
        bounds = [*map(number, self._bounds), "+Inf"]
        return [(bound, float(count)) for bound, count in zip(bounds, accumulate(self._counts))]


class Family:
    """One metric with its children by label values; one that is known is found at once."""

    def __init__(
        self,
        series: Series,
        *,
        is_there: bool = True,
        allowed: Mapping[str, frozenset[str]] | None = None,
        on_unexpected: Callable[[], None] = lambda: None,
    ) -> None:
        """One that is not there can be used all the same, and is not shown."""
        self.series = series
        self.is_there = is_there
        self._allowed = allowed or {}
        self._on_unexpected = on_unexpected
        self._children: dict[tuple[str, ...], Any] = {}
        if not series.labels:
            self.child()

    def child(self, *values: str) -> Any:
        """The Number, or for a histogram the Distribution, of these label values."""
        found = self._children.get(values)
        return self._make(values) if found is None else found

    def clear(self) -> None:
        """Forget all children, before they are counted anew."""
        self._children.clear()

    def shown(self) -> Metric:
        """All children as the library's text formats want them."""
        series = self.series
        text = f"[{series.stability}] {series.help}"
        if series.kind == "histogram":
            histogram = HistogramMetricFamily(series.name, text, labels=series.labels)
            for values, child in self._children.items():
                histogram.add_metric(values, child.buckets(), child.sum)
            return histogram
        kind = CounterMetricFamily if series.kind == "counter" else GaugeMetricFamily
        family = kind(series.name, text, labels=series.labels)
        for values, child in self._children.items():
            family.add_metric(values, child.value)
        return family

    def _make(self, values: tuple[str, ...]) -> Any:
        if len(values) != len(self.series.labels):
            raise ValueError(f"{self.series.name} has the labels {self.series.labels}, got the values {values}")
        constrained = tuple(map(self._constrained, self.series.labels, values))
        if constrained not in self._children:
            histogram = self.series.kind == "histogram"
            self._children[constrained] = Distribution(self.series.buckets) if histogram else Number()
        return self._children[constrained]

    def _constrained(self, label: str, value: str) -> str:
        if value in self._allowed.get(label, (value,)):
            return value
        self._on_unexpected()
        return UNEXPECTED

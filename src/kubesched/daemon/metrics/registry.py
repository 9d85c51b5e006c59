"""Every metric of the catalogue, as plain numbers: one thread counts and exposes them, so none needs a lock.

A histogram of the client library takes several microseconds for each observation, and an attempt makes a dozen. What
happens for every pod is noted in passing, and counted later together with many others of its kind. Between two pods
other programs have had the processor's caches, so that thirty observations cost several times what they cost in a row;
and most of many in a row have the same labels, which are looked up once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import accumulate, repeat
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from kubesched.api.yaml import YamlError, documents
from kubesched.cel.values import show_double
from kubesched.daemon.checks import OptionsError, read_text
from kubesched.daemon.feature_gates import FeatureGates, VersionInfo
from kubesched.daemon.options import Options

Kind = Literal["counter", "gauge", "histogram"]


class MetricDefinition(NamedTuple):
    """A row of the catalogue."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    stability: str
    help: str
    buckets: tuple[float, ...] = ()
    gate: str = ""
    """The feature gate without which it does not exist."""


def _table() -> dict[str, tuple[MetricDefinition, ...]]:
    """The metrics by group. tools/metrics.py keeps the table up to date with upstream's lists."""
    groups: dict[str, tuple[MetricDefinition, ...]] = {}
    text = files(__package__).joinpath("catalogue.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        group, name, kind, stability, labels, buckets, gate, help = line.split("\t")
        bounds = tuple(map(float, buckets.split()))
        definition = MetricDefinition(name, cast(Kind, kind), tuple(labels.split()), stability, help, bounds, gate)
        groups[group] = (*groups.get(group, ()), definition)
    return groups


_GROUPS = _table()
SCHEDULER = _GROUPS["scheduler"]
CLIENT = _GROUPS["client"]
PROCESS = _GROUPS["process"]
HEALTH = _GROUPS["health"]
OWN = _GROUPS["kubesched"]
"""Metrics that kube-scheduler does not have."""

UNEXPECTED = "unexpected"
"""Replaces a label value that is not allowed."""


Note = TypeVar("Note")
Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

MOST_NOTES = 128
"""Notes that a batch keeps before it counts them, even if nobody scrapes. More would save little, and the notes of 128
pods take up to a millisecond, for which the next pod waits."""
FEWER_NOTES = 4
"""How many fewer each batch keeps than the one before. Most get one note for each pod: with equal limits all batches
would be counted at the same pod, and one pod in 128 would wait for all of them."""


class Batch(Generic[Note]):
    """Notes of one kind that are yet to be counted. They are plain values: a note of a pod would keep it alive."""

    __slots__ = ("_count", "_fewer", "_notes")

    def __init__(self, count: Callable[[list[Note]], None], *, fewer: int = 0) -> None:
        """The batch keeps `fewer` notes less than MOST_NOTES."""
        self._count = count
        self._fewer = fewer
        self._notes: list[Note] = []

    def note(self, note: Note) -> None:
        """Keep a note, to be counted soon, and before the next scrape at the latest."""
        self._notes.append(note)
        if len(self._notes) >= MOST_NOTES - self._fewer:
            self.count()

    def count(self) -> None:
        """Count all that was noted."""
        if self._notes:
            notes, self._notes = self._notes, []
            self._count(notes)


def alike(notes: Iterable[tuple[Key, T]]) -> dict[Key, list[T]]:
    """The notes by their first part, which most of them share."""
    groups: dict[Key, list[T]] = defaultdict(list)
    for key, rest in notes:
        groups[key].append(rest)
    return groups


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

    def observe(self, amount: float, times: int = 1) -> None:
        self._counts[bisect_left(self._bounds, amount)] += times
        self.sum += amount * times

    def observe_all(self, amounts: Sequence[float]) -> None:
        counts, bounds = self._counts, self._bounds
        if max(amounts, default=0.0) <= bounds[0]:  # most parts of an attempt are quick
            counts[0] += len(amounts)
        else:
            for place in map(bisect_left, repeat(bounds), amounts):
                counts[place] += 1
        self.sum = sum(amounts, self.sum)

    def buckets(self) -> list[tuple[str, float]]:
        bounds = [*map(show_double, self._bounds), "+Inf"]
        return [(bound, float(count)) for bound, count in zip(bounds, accumulate(self._counts))]


LabelValues = tuple[str, ...]


class MetricFamily(dict[LabelValues, Any]):
    """One metric: its Numbers, or for a histogram its Distributions, by label values. One that is missing is made."""

    def __init__(
        self,
        definition: MetricDefinition,
        *,
        is_there: bool = True,
        allowed: Mapping[str, frozenset[str]] | None = None,
        on_unexpected: Callable[[], None] = lambda: None,
    ) -> None:
        """A metric with `is_there=False` can be counted all the same, and is not exposed."""
        super().__init__()
        self.definition = definition
        self.is_there = is_there
        self._allowed = allowed or {}
        self._on_unexpected = on_unexpected
        if not definition.labels:
            self.child()

    def child(self, *values: str) -> Any:
        """The Number, or for a histogram the Distribution, of these label values."""
        return self[values]

    def inc(self, values: LabelValues, times: int) -> None:
        """Add 1 so many times. Each time that the values are not allowed counts as unexpected."""
        while times and values not in self:
            self[values].inc()
            times -= 1
        if times:
            self[values].inc(times)

    def inc_each(self, notes: Iterable[LabelValues]) -> None:
        for values, times in Counter(notes).items():
            self.inc(values, times)

    def observe_all(self, values: LabelValues, amounts: Sequence[float]) -> None:
        """Add observations to a histogram, as `inc` adds to a counter."""
        if values in self:
            self[values].observe_all(amounts)
            return
        for amount in amounts:
            self[values].observe(amount)

    def observe_each(self, notes: Iterable[tuple[LabelValues, float]]) -> None:
        for values, amounts in alike(notes).items():
            self.observe_all(values, amounts)

    def shown(self) -> Metric:
        """The metric as the library's text formats want it."""
        definition = self.definition
        text = f"[{definition.stability}] {definition.help}"
        if definition.kind == "histogram":
            histogram = HistogramMetricFamily(definition.name, text, labels=definition.labels)
            for values, child in self.items():
                histogram.add_metric(values, child.buckets(), child.sum)
            return histogram
        kind = CounterMetricFamily if definition.kind == "counter" else GaugeMetricFamily
        family = kind(definition.name, text, labels=definition.labels)
        for values, child in self.items():
            family.add_metric(values, child.value)
        return family

    def __missing__(self, values: LabelValues) -> Any:
        definition = self.definition
        if len(values) != len(definition.labels):
            raise ValueError(f"{definition.name} has the labels {definition.labels}, got the values {values}")
        constrained = tuple(map(self._constrain, definition.labels, values))
        if constrained not in self:
            self[constrained] = Distribution(definition.buckets) if definition.kind == "histogram" else Number()
        return self[constrained]

    def _constrain(self, label: str, value: str) -> str:
        if value in self._allowed.get(label, (value,)):
            return value
        self._on_unexpected()
        return UNEXPECTED


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABELS = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def escaped(label_value: str) -> str:
    return label_value.translate(_IN_LABELS)


def exposition(metrics: Iterable[Metric]) -> bytes:
    """All metrics that have a sample, by name."""
    shown = sorted((metric for metric in metrics if metric.samples), key=lambda metric: metric.name)
    return "".join(line for metric in shown for line in _lines(metric)).encode()


def _lines(metric: Metric) -> Iterator[str]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    yield f"# HELP {name} {metric.documentation.translate(_IN_HELP)}\n"
    yield f"# TYPE {name} {metric.type}\n"
    for sample in metric.samples:
        yield f"{sample.name}{_labels(sample.labels)} {show_double(float(sample.value))}\n"


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    ordered = sorted(labels.items(), key=lambda label: (label[0] == "le", label[0]))
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in ordered) + "}"


AllowLists = Mapping[str, Mapping[str, frozenset[str]]]
"""Allowed values by metric and by label."""


class MetricsRegistry:
    """All metrics of one process."""

    def __init__(
        self,
        gates: FeatureGates | None = None,
        *,
        disabled: Iterable[str] = (),
        allow_lists: AllowLists | None = None,
    ) -> None:
        self._gates = gates or FeatureGates()
        self._disabled = frozenset(name for name in disabled if name)
        self._allow_lists = allow_lists or {}
        self._process = ProcessCollector(registry=None)
        self._families = {
            definition.name: self._family(definition) for definition in (*PROCESS, *SCHEDULER, *CLIENT, *OWN)
        }
        self._callbacks: list[Callable[[], None]] = []
        self._batches = 0
        self._set_info_metrics()

    def _family(self, definition: MetricDefinition) -> MetricFamily:
        """The family of a definition. It is not exposed if it was disabled, or its feature gate is off."""
        return MetricFamily(
            definition,
            is_there=definition.name not in self._disabled and self._is_on(definition.gate),
            allowed=self._allow_lists.get(definition.name),
            on_unexpected=lambda: self.family("cardinality_enforcement_unexpected_categorizations_total").child().inc(),
        )

    def family(self, name: str) -> MetricFamily:
        return self._families[name]

    def _is_on(self, gate: str) -> bool:
        """Whether the metric exists. A gate that the release no longer has was always on in the release before.

        After the gate may stand a behaviour that the release must have, or with `!` must not have.
        """
        gate, _, behaviour = gate.partition(" ")
        is_followed = not behaviour or getattr(self._gates.release, behaviour.lstrip("!")) != behaviour.startswith("!")
        return is_followed and self._gates.get(gate, True)

    def on_scrape(self, callback: Callable[[], None]) -> None:
        """Call `callback` before every scrape, to update metrics that are only counted then."""
        self._callbacks.append(callback)

    def batch(self, count: Callable[[list[Note]], None]) -> Batch[Note]:
        """For notes of one kind, which are counted before every scrape at the latest."""
        batch = Batch(count, fewer=FEWER_NOTES * self._batches)
        self._batches += 1
        self.on_scrape(batch.count)
        return batch

    def exposed(self) -> bytes:
        """All metrics as text."""
        for callback in self._callbacks:
            callback()
        families = (family.shown() for family in self._families.values() if family.is_there)
        return exposition((*self._process.collect(), *families))

    def _set_info_metrics(self) -> None:
        """Set the metrics that say what runs: the version, and the feature gates."""
        info = VersionInfo.of(self._gates.release)
        self.family("kubernetes_build_info").child(*(getattr(info, name) for name in info.__struct_fields__)).set(1)
        self.family("version_info").child("kube", *self._gates.release.compatible_versions).set(1)
        enabled = self.family("kubernetes_feature_enabled")
        for gate, is_on in self._gates.items():
            enabled.child(gate, str(self._gates.definitions[gate].stage)).set(is_on)
        self.family("disabled_metrics_total").child().inc(len(self._disabled))
        self.on_scrape(self._count_metrics)

    def _count_metrics(self) -> None:
        registered = self.family("registered_metrics_total")
        registered.clear()
        for family in self._families.values():
            registered.child(family.definition.stability, "").inc(family.is_there)


def allow_lists(mapping: Mapping[str, str]) -> AllowLists:
    """From `{"metric,label": "value,value"}`, as flags and manifests have it."""
    lists: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in mapping.items():
        metric, _, label = key.partition(",")
        lists.setdefault(metric.strip(), {})[label.strip()] = frozenset(values.split(","))
    return lists


def registry_of(options: Options, gates: FeatureGates) -> MetricsRegistry:
    """A registry without the metrics that were switched off, and with the label values that are allowed.

    What the command line allows goes before what the manifest allows. OptionsError if that cannot be read.
    """
    mapping = {**_manifest(options.allow_metric_labels_manifest), **options.allow_metric_labels}
    return MetricsRegistry(gates, disabled=options.disabled_metrics, allow_lists=allow_lists(mapping))


def _manifest(file: str) -> dict[str, str]:
    if not file:
        return {}
    flag = "--allow-metric-labels-manifest"
    try:
        document: Any = next(documents(read_text(file, flag)), None)
    except YamlError as error:
        raise OptionsError(f"{flag}: {file}: {error}") from None
    mapping = document.value.get("allowListMapping") if document and isinstance(document.value, dict) else None
    if not isinstance(mapping, dict) or not all(isinstance(value, str) for value in mapping.values()):
        raise OptionsError(f"{flag}: {file}: expected allowListMapping with texts by metric and label")
    return mapping

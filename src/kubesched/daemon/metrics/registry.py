"""The metrics that exist, what may be said in their labels, and their text for a scraper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import ProcessCollector

from kubesched.api.yaml import YamlError, documents
from kubesched.daemon.checks import OptionsError, read_text
from kubesched.daemon.feature_gates import COMPATIBLE_VERSIONS, FeatureGates, VersionInfo
from kubesched.daemon.metrics.family import (
    CLIENT,
    OWN,
    PROCESS,
    SCHEDULER,
    Batch,
    MetricDefinition,
    MetricFamily,
    Note,
    exposition,
)
from kubesched.daemon.options import Options

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
        self._say_what_this_is()

    def _family(self, definition: MetricDefinition) -> MetricFamily:
        """One that is not shown if it was switched off or its feature is off."""
        return MetricFamily(
            definition,
            is_there=definition.name not in self._disabled and (not definition.gate or self._gates[definition.gate]),
            allowed=self._allow_lists.get(definition.name),
            on_unexpected=lambda: self.family("cardinality_enforcement_unexpected_categorizations_total").child().inc(),
        )

    def family(self, name: str) -> MetricFamily:
        return self._families[name]

    def on_scrape(self, callback: Callable[[], None]) -> None:
        """To be called before every scrape, to bring up to date what is only counted then."""
        self._callbacks.append(callback)

    def batch(self, count: Callable[[list[Note]], None]) -> Batch[Note]:
        """For notes of one kind, which are counted before every scrape at the latest."""
        batch = Batch(count)
        self.on_scrape(batch.count)
        return batch

    def exposed(self) -> bytes:
        """All metrics as text."""
        for callback in self._callbacks:
            callback()
        families = (family.shown() for family in self._families.values() if family.is_there)
        return exposition((*self._process.collect(), *families))

    def _say_what_this_is(self) -> None:
        info = VersionInfo()
        self.family("kubernetes_build_info").child(*(getattr(info, name) for name in info.__struct_fields__)).set(1)
        self.family("version_info").child("kube", *COMPATIBLE_VERSIONS).set(1)
        enabled = self.family("kubernetes_feature_enabled")
        for gate in self._gates:
            enabled.child(gate, str(self._gates.stage(gate))).set(self._gates[gate])
        self.family("disabled_metrics_total").child().inc(len(self._disabled))
        self.on_scrape(self._count_metrics)

    def _count_metrics(self) -> None:
        registered = self.family("registered_metrics_total")
        registered.clear()
        for family in self._families.values():
            registered.child(family.definition.stability, "").inc(family.is_there)


def allow_lists(mapping: Mapping[str, str]) -> AllowLists:
    """From `{"metric,label": "value,value"}`, as flags and manifests have it."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in mapping.items():
        metric, _, label = key.partition(",")
        found.setdefault(metric.strip(), {})[label.strip()] = frozenset(values.split(","))
    return found


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

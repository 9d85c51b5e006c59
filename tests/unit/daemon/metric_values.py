"""Reading metrics as a scraper does."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kubesched.daemon.metrics.registry import MetricsRegistry


def value_of(registry: MetricsRegistry, sample: str, **labels: str) -> float:
    """The sum of all samples of this name with at least these labels."""
    text = registry.exposed().decode()
    return sum(
        each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if each.name == sample and labels.items() <= each.labels.items()
    )

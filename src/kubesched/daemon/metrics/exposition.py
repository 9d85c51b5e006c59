"""Prometheus' text format as Kubernetes components write it: sorted, with numbers in Go's words.

Label values such as the bounds of buckets are compared as texts, so `le="1"` must not become `le="1.0"`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_POSITIONAL_DIGITS = 6
_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABELS = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def number(value: float) -> str:
    """The shortest text for a number: without a fraction where there is none, with an exponent from a million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(float(value)).removesuffix(".0")
    whole, _, fraction = text.removeprefix("-").partition(".")
    if len(whole) <= _POSITIONAL_DIGITS or "e" in text:
        return text
    digits = f"{whole}{fraction}".rstrip("0")
    sign, tail = "-" if value < 0 else "", f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{tail}e+{len(whole) - 1:02}"


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
        yield f"{sample.name}{_labels(sample.labels)} {number(sample.value)}\n"


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    ordered = sorted(labels.items(), key=lambda label: (label[0] == "le", label[0]))
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in ordered) + "}"

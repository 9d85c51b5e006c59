"""What nodes and pods use, as metrics.k8s.io has it, beside what they request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubesched.api.kinds import Object
from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY

_UNITS = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Amounts in the units of the node table: thousandths of a cpu, and bytes."""

    nodes: Mapping[str, Mapping[str, int]]
    pods: Mapping[str, Mapping[str, int]]
    """By `namespace/name`."""


def read_usage(nodes: Iterable[Object], pods: Iterable[Object]) -> UsageReport:
    """From NodeMetrics and PodMetrics. What cannot be read is left out."""
    by_pod = {}
    for pod in pods:
        total = Counter[str]()
        for container in pod.get("containers") or ():
            total.update(_amounts(container.get("usage") or {}))
        by_pod[f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"] = total
    return UsageReport({node["metadata"]["name"]: _amounts(node.get("usage") or {}) for node in nodes}, by_pod)


def _amounts(usage: Mapping[str, str | int]) -> dict[str, int]:
    amounts = {}
    for name in (CPU, MEMORY):
        try:
            quantity = parse_quantity(usage[name])
        except (KeyError, QuantityError):
            continue
        amounts[name] = quantity.milli() if name == CPU else quantity.value()
    return amounts


def amounts_in_words(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: rounded_amount(name, amount) for name, amount in amounts.items() if amount}


def rounded_amount(resource: str, amount: int) -> str:
    """An amount in the units of the node table, with at most one digit after the point."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for size, unit in _UNITS:
            if abs(amount) >= size:
                return f"{amount / size:.1f}".removesuffix(".0") + unit
    return str(amount)

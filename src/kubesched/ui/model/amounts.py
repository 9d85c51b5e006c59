"""Amounts of resources as people write them."""

from __future__ import annotations

from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY

_UNITS = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_BYTES = (MEMORY, EPHEMERAL_STORAGE)


def spelled(resource: str, amount: int) -> str:
    """An amount in the unit of the node table: thousandths of cpu, units of everything else."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource in _BYTES or resource.startswith("hugepages-"):
        for size, unit in _UNITS:
            if abs(amount) >= size:
                return f"{amount / size:.1f}".removesuffix(".0") + unit
    return str(amount)

"""The device most tests ask about."""

from __future__ import annotations

from contextlib import suppress

from kubesched.api.quantity import parse_quantity
from kubesched.cel import CelDevice, EvaluationError, Version, compile_selector, view_device
from kubesched.cel.costs import COST_LIMIT, CostMeter

GPU = view_device(
    "gpu.example.com",
    {
        "model": "a100",
        "mem": 40,
        "mig": True,
        "ver": Version("1.2.3"),
        "vendor.com/family": "ampere",
        "gpu.example.com/explicit": "own",
    },
    {name: parse_quantity(text) for name, text in {"memory": "40Gi", "frac": "1500m", "vendor.com/bw": "100G"}.items()},
)


def matches(expression: str, device: CelDevice = GPU) -> bool:
    """Whether the device matches; `$` in the expression stands for the attributes of the driver's own domain."""
    return compile_selector(spelled_out(expression)).matches(device)


def cost_of(expression: str, device: CelDevice = GPU) -> int:
    """What it costs to find out whether the device matches, or that this cannot be found out."""
    meter = CostMeter()
    with suppress(EvaluationError):
        compile_selector(spelled_out(expression)).metered().matches(device, meter)
    return COST_LIMIT - meter.left


def spelled_out(expression: str) -> str:
    """The expression with its abbreviations replaced: `$.x` is an attribute, `#.x` a capacity."""
    return expression.replace("$.", 'device.attributes["gpu.example.com"].').replace(
        "#.", 'device.capacity["gpu.example.com"].'
    )

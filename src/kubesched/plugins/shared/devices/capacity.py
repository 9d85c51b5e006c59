"""Consumable capacity: how much of a device a request takes, by what it asks for and what the device allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubesched.api.devices import CapacityPolicy
from kubesched.api.quantity import Family, QuantityText, family_of, parse_quantity, spell
from kubesched.plugins.shared.devices.device_kinds import DeviceKind, KindCapacity

_NANO = 10**9


class Amount(NamedTuple):
    """A share of a capacity: in billionths, and in the family of suffixes in which it is written down."""

    nano: int
    family: Family

    @property
    def text(self) -> str:
        return spell(self.nano, self.family)


Amounts = dict[str, Amount]


def amounts_taken(requests: Mapping[str, QuantityText], kind: DeviceKind) -> Amounts | str:
    """What a request takes of all capacities of a device; or why it cannot have the device at all."""
    for name in requests:
        if name not in kind.capacity:
            return f"has no capacity {name}"
    taken: Amounts = {}
    for name, capacity in kind.capacity.items():
        amount = _taken(requests.get(name), capacity)
        if _is_refused(amount.nano, capacity.policy):
            return f"does not give out {amount.text} of its {name}"
        if amount.nano > capacity.nano:
            return f"has only {capacity.text} of {name}"
        taken[name] = amount
    return taken


def _taken(requested: QuantityText | None, capacity: KindCapacity) -> Amount:
    policy = capacity.policy
    if requested is None:
        return _amount(capacity.text if policy is None or policy.default is None else policy.default)
    amount = _amount(requested)
    if policy is None:
        return amount
    allowed = policy.valid_range
    if allowed is not None and allowed.min is not None:
        least = _amount(allowed.min)
        if amount.nano < least.nano:
            return least
        return amount if allowed.step is None else _rounded_up(requested, allowed.min, allowed.step)
    if policy.valid_values:
        return next((value for value in map(_amount, policy.valid_values) if amount.nano <= value.nano), amount)
    return amount


def _rounded_up(requested: QuantityText, least: QuantityText, step: QuantityText) -> Amount:
    start, stride = parse_quantity(least).value(), parse_quantity(step).value()
    steps = -(-(parse_quantity(requested).value() - start) // stride)
    return Amount((start + stride * steps) * _NANO, Family.BINARY)


def _is_refused(nano: int, policy: CapacityPolicy | None) -> bool:
    """Whether the policy does not allow the amount. Its default is always allowed."""
    if policy is None or (policy.default is not None and _amount(policy.default).nano == nano):
        return False
    allowed = policy.valid_range
    if allowed is not None:
        if allowed.max is not None and nano > _amount(allowed.max).nano:
            return True
        if allowed.step is None or allowed.min is None:
            return False
        whole = -(-nano // _NANO)
        return (whole - parse_quantity(allowed.min).value()) % parse_quantity(allowed.step).value() != 0
    return bool(policy.valid_values) and all(nano != _amount(value).nano for value in policy.valid_values)


def _amount(text: QuantityText) -> Amount:
    return Amount(parse_quantity(text).nano(), family_of(text))

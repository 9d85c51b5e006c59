"""Consumable capacity: how much of a device a request takes, by what it asks for and what the device allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubesched.api.devices import CapacityPolicy, CapacityRange
from kubesched.api.quantity import Family, QuantityText, family_of, parse_quantity, spell
from kubesched.plugins.shared.arithmetic import MAX_INT64
from kubesched.plugins.shared.devices.device_kinds import DeviceFrame, KindCapacity

_NANO, _MILLI = 10**9, 10**6
"""Billionths in one, and in a thousandth."""


class Amount(NamedTuple):
    """A share of a capacity: in billionths, and in the family of suffixes in which it is written down."""

    nano: int
    family: Family

    @property
    def text(self) -> str:
        return spell(self.nano, self.family)


Amounts = dict[str, Amount]


class CapacityError(Exception):
    """A request that no arithmetic of a device can represent: the search ends."""


class CapacityRules(NamedTuple):
    """How amounts are rounded to what devices give out."""

    in_thousandths: bool = False
    """Ranges may have fractions (the gate DRAFractionalCapacityRange)."""
    is_strict: bool = False
    """Amounts that cannot be represented are errors, and rounded ones are written as the step is (`Release`)."""


def amounts_taken(requests: Mapping[str, QuantityText], frame: DeviceFrame, rules: CapacityRules) -> Amounts | str:
    """What a request takes of all capacities of a device; or why it cannot have the device at all.

    CapacityError if no device is to be tried any more.
    """
    for name in requests:
        if name not in frame.capacity:
            return f"has no capacity {name}"
    amounts: Amounts = {}
    for name, capacity in frame.capacity.items():
        try:
            amounts[name] = _amount_taken(requests.get(name), capacity, rules)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from None
        if rules.is_strict and amounts[name].nano < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
    for name, capacity in frame.capacity.items():
        amount = amounts[name]
        if _is_refused(amount.nano, capacity.policy, rules):
            return f"does not give out {amount.text} of its {name}"
        if amount.nano > capacity.nano:
            return f"has only {capacity.text} of {name}"
    return amounts


def _amount_taken(requested: QuantityText | None, capacity: KindCapacity, rules: CapacityRules) -> Amount:
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
        return amount if allowed.step is None else _rounded_up(amount, allowed, rules)
    if policy.valid_values:
        return next((value for value in map(_amount, policy.valid_values) if amount.nano <= value.nano), amount)
    return amount


def _rounded_up(requested: Amount, allowed: CapacityRange, rules: CapacityRules) -> Amount:
    """From the minimum in whole steps."""
    unit = _MILLI if _counts_thousandths(allowed, rules) else _NANO
    if rules.is_strict:
        if unit == _MILLI and _is_finer(requested.nano):
            raise _unrepresentable(f"request {requested.text} is not a representable milli value")
        if unit == _NANO and requested.nano > MAX_INT64 * _NANO:
            raise _unrepresentable(f"request {requested.text} exceeds MaxInt64")
    least, step = _in_units(allowed.min, unit), _in_units(allowed.step, unit)
    steps = -(-(_ceiling(requested.nano, unit) - least) // step)
    if rules.is_strict and least >= 0 and steps > (MAX_INT64 - least) // step:
        limit = "the milli-value range" if unit == _MILLI else "MaxInt64"
        raise _unrepresentable(f"rounding request {requested.text} up to the next step passes {limit}")
    family = family_of(allowed.step) if rules.is_strict and allowed.step is not None else Family.BINARY
    return Amount((least + step * steps) * unit, family)


def _counts_thousandths(allowed: CapacityRange, rules: CapacityRules) -> bool:
    """Whether all of a range can be counted in thousandths."""
    if not rules.in_thousandths:
        return False
    bounds = [_amount(text).nano for text in (allowed.min, allowed.max, allowed.step) if text is not None]
    return not any(map(_is_finer, bounds)) and (allowed.step is None or _amount(allowed.step).nano >= _MILLI)


def _is_finer(nano: int) -> bool:
    """Whether an amount is no whole number of thousandths that a computer can hold."""
    return nano % _MILLI != 0 or not -MAX_INT64 - 1 <= nano // _MILLI <= MAX_INT64


def _in_units(text: QuantityText | None, unit: int) -> int:
    return 0 if text is None else _ceiling(_amount(text).nano, unit)


def _ceiling(nano: int, unit: int) -> int:
    return -(-nano // unit)


def _unrepresentable(why: str) -> CapacityError:
    return CapacityError(f"capacity request cannot be represented in the device's range arithmetic: {why}")


def _is_refused(nano: int, policy: CapacityPolicy | None, rules: CapacityRules) -> bool:
    """Whether the policy does not allow the amount. Its default is always allowed."""
    if policy is None or (policy.default is not None and _amount(policy.default).nano == nano):
        return False
    allowed = policy.valid_range
    if allowed is not None:
        if allowed.max is not None and nano > _amount(allowed.max).nano:
            return True
        if allowed.step is None or allowed.min is None:
            return False
        unit = _MILLI if _counts_thousandths(allowed, rules) else _NANO
        if unit == _MILLI and _is_finer(nano):
            return True
        return (_ceiling(nano, unit) - _in_units(allowed.min, unit)) % _in_units(allowed.step, unit) != 0
    return bool(policy.valid_values) and all(nano != _amount(value).nano for value in policy.valid_values)


def _amount(text: QuantityText) -> Amount:
    return Amount(parse_quantity(text).nano(), family_of(text))

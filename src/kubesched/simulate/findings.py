"""Checks that many fields share: numbers, quantities, labels and selectors, each with the path of the field."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.api.pod import ResourceRequirements
from kubesched.api.quantity import Quantity, QuantityText, parse_quantity
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from kubesched.api.schema import Mistake
from kubesched.api.selectors import label_key_fault, label_value_fault

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_OF_CONTAINERS = (CPU, MEMORY, EPHEMERAL_STORAGE)
_INT32 = (-(2**31), 2**31 - 1)


class Findings:
    """The mistakes found so far in one object."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def say(self, path: str, problem: str) -> None:
        self.mistakes.append(Mistake(path, problem))

    # -- plain values -------------------------------------------------------------------------------------------------

    def number(self, path: str, value: int | None, low: int = _INT32[0], high: int = _INT32[1]) -> None:
        if value is not None and not low <= value <= high:
            self.say(path, f"{value} is not a number from {low} to {high}")

    def one_of(self, path: str, value: str | None, allowed: Collection[str]) -> None:
        if value is not None and value not in allowed:
            self.say(path, f"{value!r} is not one of {', '.join(allowed)}")

    def time(self, path: str, text: str) -> None:
        try:
            if text and (not _TIME.fullmatch(text) or not datetime.fromisoformat(text).timestamp()):
                raise ValueError
        except (ValueError, OverflowError):
            self.say(path, f"{text!r} is not a time such as 2026-01-31T12:00:00Z")

    # -- quantities ---------------------------------------------------------------------------------------------------

    def quantity(self, path: str, text: QuantityText) -> Quantity | None:
        """Read a quantity that may not be negative."""
        try:
            found = parse_quantity(text)
        except ValueError as error:
            self.say(path, str(error))
            return None
        if found.amount < 0:
            self.say(path, f"{text!r} is less than zero")
        return found

    def amounts(self, path: str, amounts: Mapping[str, QuantityText]) -> dict[str, Quantity]:
        """Amounts of resources; those of devices and of pods are whole numbers."""
        read: dict[str, Quantity] = {}
        for name, text in amounts.items():
            found = self.quantity(f"{path}.{name}", text)
            if found is None:
                continue
            read[name] = found
            if (name == PODS or is_extended(name)) and found.milli() % 1000:
                self.say(f"{path}.{name}", f"{text!r} is not a whole number, and {name} cannot be shared")
        return read

    def resources(self, path: str, resources: ResourceRequirements) -> None:
        """Requests and limits of a container or a pod."""
        requests = self.amounts(f"{path}.requests", resources.requests)
        limits = self.amounts(f"{path}.limits", resources.limits)
        for kind, amounts in (("requests", requests), ("limits", limits)):
            for name in amounts:
                self._resource_name(f"{path}.{kind}", name)
        for name, limit in limits.items():
            if name in requests and requests[name].exceeds(limit):
                asked, allowed = resources.requests[name], resources.limits[name]
                self.say(f"{path}.requests.{name}", f"{asked!r} is more than the limit of {allowed!r}")

    def _resource_name(self, path: str, name: str) -> None:
        if "/" not in name and name not in _OF_CONTAINERS and not name.startswith("hugepages-"):
            self.say(f"{path}.{name}", f"{name!r} is not a resource such as cpu, memory or example.com/device")
        elif label_key_fault(name):
            self.say(f"{path}.{name}", f"{name!r} is not the name of a resource")

    # -- labels and selectors -----------------------------------------------------------------------------------------

    def label_key(self, path: str, key: str) -> None:
        if fault := label_key_fault(key):
            self.say(path, fault)

    def labels(self, path: str, labels: Mapping[str, str]) -> None:
        for key, value in labels.items():
            if fault := label_key_fault(key) or label_value_fault(value):
                self.say(f"{path}.{key}", fault)

    def selector(self, path: str, selector: LabelSelector | None) -> None:
        if selector is None:
            return
        self.labels(f"{path}.matchLabels", selector.match_labels)
        for i, requirement in enumerate(selector.match_expressions):
            here = f"{path}.matchExpressions[{i}]"
            self._requirement(here, requirement)
            for j, value in enumerate(requirement.values):
                if fault := label_value_fault(value):
                    self.say(f"{here}.values[{j}]", fault)

    def node_selector(self, path: str, selector: NodeSelector | None) -> None:
        if selector is None:
            return
        if not selector.node_selector_terms:
            self.say(f"{path}.nodeSelectorTerms", "at least one term is needed")
        for i, term in enumerate(selector.node_selector_terms):
            self.node_term(f"{path}.nodeSelectorTerms[{i}]", term)

    def node_term(self, path: str, term: NodeSelectorTerm) -> None:
        """Values are not looked at: a bound such as -5 is no label value, but it is a bound."""
        for i, requirement in enumerate(term.match_expressions):
            self._requirement(f"{path}.matchExpressions[{i}]", requirement)
        for i, requirement in enumerate(term.match_fields):
            self._field(f"{path}.matchFields[{i}]", requirement)

    def _requirement(self, path: str, requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> None:
        self.label_key(f"{path}.key", requirement.key)
        operator, count = requirement.operator, len(requirement.values)
        if operator in ("In", "NotIn") and not count:
            self.say(f"{path}.values", f"operator {operator} needs at least one value")
        elif operator in ("Exists", "DoesNotExist") and count:
            self.say(f"{path}.values", f"operator {operator} takes no values")
        elif operator in ("Gt", "Lt") and count != 1:
            self.say(f"{path}.values", f"operator {operator} needs exactly one value")

    def _field(self, path: str, requirement: NodeSelectorRequirement) -> None:
        if requirement.key != "metadata.name":
            self.say(f"{path}.key", f"{requirement.key!r} is not a field to select by; only metadata.name is")
        if requirement.operator not in ("In", "NotIn"):
            self.say(f"{path}.operator", f"{requirement.operator!r} is not one of In, NotIn")
        elif len(requirement.values) != 1:
            self.say(f"{path}.values", "exactly one value is needed")

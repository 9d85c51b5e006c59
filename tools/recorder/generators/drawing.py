"""Random choices from a seed, and the small vocabulary that all generated objects are made of."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

Json = dict[str, Any]
T = TypeVar("T")

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
TOPOLOGIES = (HOSTNAME, ZONE, REGION, "rack", "example.com/missing")
NAMESPACES = ("default", "team-a", "team-b", "quiet")
APPS = ("web", "api", "db", "cache", "batch")
TIERS = ("front", "back")
DISKS = ("ssd", "hdd", "nvme")
EXTENDED = ("example.com/gpu", "example.com/fpga", "hugepages-2Mi")
IMAGES = ("registry.local/app:v1", "registry.local/app:v2", "nginx", "nginx:latest", "redis:7", "registry.local/huge:1")
PRIORITIES = (None, -2147483648, -10, 0, 0, 10, 100, 1000, 2000000000)
TAINT_KEYS = ("dedicated", "gpu", "node.kubernetes.io/unreachable", "example.com/maintenance")
GONE = "gone"
"""A node that does not exist, which some pods are on."""
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Draw:
    """All randomness of one case."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def one(self, values: Sequence[T]) -> T:
        return values[self._random.randrange(len(values))]

    def some(self, values: Sequence[T], at_most: int) -> list[T]:
        """Different ones, possibly none, in no order."""
        return self._random.sample(list(values), self._random.randint(0, min(at_most, len(values))))

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def number(self, lowest: int, highest: int) -> int:
        return self._random.randint(lowest, highest)

    def labels(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.chance(0.85):
            found["app"] = self.one(APPS)
        if self.chance(0.4):
            found["tier"] = self.one(TIERS)
        if self.chance(0.2):
            found["version"] = self.one(("v1", "v2", "10", "9"))
        return found

    def selector(self) -> Json:
        """A label selector; some match nothing, some everything."""
        if self.chance(0.05):
            return {}
        found: Json = {}
        if self.chance(0.7):
            found["matchLabels"] = {"app": self.one(APPS)}
        if self.chance(0.4) or not found:
            found["matchExpressions"] = [self.requirement() for _ in range(self.number(1, 2))]
        return found

    def requirement(self) -> Json:
        key, values = self.one((("app", APPS), ("tier", TIERS), ("version", ("v1", "v2", "10")), ("nope", ("x",))))
        operator = self.one(("In", "NotIn", "Exists", "DoesNotExist"))
        given: Json = {"key": key, "operator": operator}
        return {**given, "values": self.some(values, 3) or [values[0]]} if operator.endswith("In") else given

    def node_requirement(self) -> Json:
        operator = self.one(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"key": "generation", "operator": operator, "values": [str(self.number(0, 12))]}
        key, values = self.one(
            ((ZONE, ("z0", "z1", "z2")), ("disk", DISKS), ("rack", ("r0", "r1", "r7")), ("generation", ("1", "x")))
        )
        given: Json = {"key": key, "operator": operator}
        return {**given, "values": self.some(values, 3) or [values[0]]} if operator.endswith("In") else given

    def cpu(self) -> Any:
        spelled = ("0", "1m", "50m", "100m", "0.25", "250m", "500m", 0.5, "0.9999", "1", "1500m", 2, "1e0", "3")
        return self.one(spelled)

    def memory(self) -> Any:
        spelled = ("0", "1", "64Mi", "128Mi", "256e6", "0.5Gi", 268435456, "1Gi", "1.5Gi", "2G", "3Gi", "123456789")
        return self.one(spelled)


def new_object(
    version: str, kind: str, name: str, *, namespace: str = "", labels: dict[str, str] | None = None
) -> Json:
    metadata: Json = {"name": name, "uid": f"uid-{kind.lower()}-{namespace}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": version, "kind": kind, "metadata": metadata}

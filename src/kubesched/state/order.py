"""The order in which nodes are looked at when not all of them are: zones take turns, as in kube-scheduler."""

from __future__ import annotations

from itertools import chain, zip_longest

from kubesched.api.node import Node


class NodeOrder:
    """Nodes by zone, each zone in order of arrival."""

    def __init__(self) -> None:
        self._zones: dict[tuple[str, str], dict[str, None]] = {}
        self._zone_of: dict[str, tuple[str, str]] = {}
        self._listed: list[str] | None = None

    def put(self, node: Node) -> None:
        """A node arrived, or may have moved to another zone."""
        zone = _zone(node)
        if self._zone_of.get(node.name) == zone:
            return
        self.discard(node.name)
        self._zone_of[node.name] = zone
        self._zones.setdefault(zone, {})[node.name] = None

    def discard(self, name: str) -> None:
        self._listed = None
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            del self._zones[zone][name]
            if not self._zones[zone]:
                del self._zones[zone]

    def names(self) -> list[str]:
        """One node of each zone in turn."""
        if self._listed is None:
            turns = zip_longest(*self._zones.values())
            self._listed = [name for name in chain.from_iterable(turns) if name is not None]
        return self._listed


def _zone(node: Node) -> tuple[str, str]:
    labels = node.metadata.labels

    def value(kind: str) -> str:
        old = labels.get(f"failure-domain.beta.kubernetes.io/{kind}")
        return labels.get(f"topology.kubernetes.io/{kind}", "") if old is None else old

    return value("region"), value("zone")

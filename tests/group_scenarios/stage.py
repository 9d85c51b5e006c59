"""A cluster on which scenarios about pod groups are played: objects are JSON, wherever they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Scenario = Callable[["Stage"], None]

ALPHA, BETA = "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1"
RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


class Stage:
    """What a scenario can do and see. Where time matters, it passes until what is expected has happened."""

    api = ALPHA
    """The version of PodGroup."""

    # -- to be said by each stage -------------------------------------------------------------------------------------

    def create(self, api_version: str, kind: str, body: Json) -> None:
        raise NotImplementedError

    def change_group(self, name: str, spec: Json) -> None:
        raise NotImplementedError

    def remove(self, kind: str, name: str) -> None:
        raise NotImplementedError

    def pods(self) -> list[Json]:
        raise NotImplementedError

    def open_gates(self, pod: str) -> None:
        raise NotImplementedError

    def expect(self, is_met: Callable[[], bool], what: str) -> None:
        """It is so in the end."""
        raise NotImplementedError

    # -- the cluster --------------------------------------------------------------------------------------------------

    def nodes(self, count: int, *, prefix: str = "n", first: int = 0, cpu: str = "1", **labels: str) -> None:
        """Labels are `rack` and `zone`."""
        keys = {"rack": RACK, "zone": ZONE}
        for name in [f"{prefix}{i}" for i in range(first, first + count)]:
            capacity = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
            self.create(
                "v1",
                "Node",
                {
                    "metadata": {"name": name, "labels": {HOSTNAME: name} | {keys[k]: v for k, v in labels.items()}},
                    "status": {
                        "capacity": capacity,
                        "allocatable": capacity,
                        "conditions": [{"type": "Ready", "status": "True"}],
                    },
                },
            )

    def group(
        self, name: str, min_count: int | None, *, key: str = "", priority: int | None = None, as_one: bool = False
    ) -> None:
        """A gang; basic without a count. It stays within a domain of the key, if there is one."""
        spec: Json = {"schedulingPolicy": {"gang": {"minCount": min_count}} if min_count else {"basic": {}}}
        if key:
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        if priority is not None:
            spec["priority"] = priority
        if as_one:
            spec["disruptionMode"] = "PodGroup" if self.api == ALPHA else {"all": {}}
        self.create(self.api, "PodGroup", {"metadata": {"name": name}, "spec": spec})

    def members(self, group: str, count: int, *, first: int = 0, **spec: Any) -> None:
        for i in range(first, first + count):
            self.pod(f"{group}-{i}", schedulingGroup={"podGroupName": group}, **spec)

    def pod(self, name: str, *, cpu: str = "1", node: str = "", **spec: Any) -> None:
        container: Json = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
        if port := spec.pop("hostPort", None):
            container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
        if node:
            spec["nodeName"] = node
        labels = {"app": name.rpartition("-")[0] or name}
        self.create("v1", "Pod", {"metadata": {"name": name, "labels": labels}, "spec": spec})

    def budget(self, app: str, allowed: int) -> None:
        """Of the pods of an app so many may be disrupted."""
        body = {"metadata": {"name": app}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}}
        self.create("policy/v1", "PodDisruptionBudget", body | {"status": {"disruptionsAllowed": allowed}})

    # -- what became of it --------------------------------------------------------------------------------------------

    def where(self, prefix: str) -> dict[str, str]:
        """The nodes of the pods that have one."""
        pods = [(pod["metadata"]["name"], pod["spec"].get("nodeName", "")) for pod in self.pods()]
        return {name: node for name, node in pods if node and name.rpartition("-")[0] == prefix}

    def settles(self, **counts: int) -> None:
        """So many pods of each group, or app, have nodes in the end."""

        def now() -> dict[str, int]:
            return {prefix: len(self.where(prefix)) for prefix in counts}

        self.expect(lambda: now() == counts, f"{counts}")

    def waits(self, *names: str, **counts: int) -> None:
        """These pods are told that they cannot have a node; meanwhile so many of each group have one."""
        for name in names:
            self.expect(lambda name=name: bool(self.why(name)), f"a reason for {name}")  # type: ignore[misc]
        assert {prefix: len(self.where(prefix)) for prefix in counts} == counts

    def why(self, name: str) -> str:
        """Why a pod waits; empty if it does not, or nobody has said so."""
        found = next((pod for pod in self.pods() if pod["metadata"]["name"] == name), None)
        conditions = (found or {}).get("status", {}).get("conditions") or []
        return next((each.get("message", "") for each in conditions if each["status"] == "False"), "")

    def racks(self, prefix: str) -> set[str]:
        """The first letters of the nodes: scenarios name nodes after their racks."""
        return {node[0] for node in self.where(prefix).values()}

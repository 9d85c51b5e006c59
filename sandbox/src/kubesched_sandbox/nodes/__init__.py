"""Hollow nodes: renew leases, fail and run pods, as far as the API shows it, without machines or containers.

One object plays the kubelets of thousands of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import islice
from math import ceil

from kubesched.api.kinds import CSI_NODES, LEASES, NODES, PODS, Object, Resource
from kubesched.controllers.pod_templates import owner_reference
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import is_true
from kubesched_sandbox.api.stamps import micro_timestamp
from kubesched_sandbox.nodes.manifests import (
    FAILED,
    GPUS,
    advertised,
    gpus_of,
    is_failed,
    is_hollow,
    node_manifest,
    node_manifests,
    publish_gpus,
    ready_conditions,
    register_node,
)
from kubesched_sandbox.nodes.pods import HollowPods, PodTimings
from kubesched_sandbox.reconcilers.node_lifecycle import LEASE_NAMESPACE
from kubesched_sandbox.reconcilers.reconciler import Timers

__all__ = ["GPUS", "HollowNodes", "gpus_of", "node_manifests", "publish_gpus"]

MANAGER = "kubelet"
_SLICE = 20
_HEARTBEAT = 300.0
_LEASE_PERIOD = 10.0
_RENEWALS_PER_SECOND = 100


class HollowNodes:
    """Plays every node that carries the hollow annotation, until it is deleted.

    Whether a node is in touch is an annotation too, so that it survives a restart and kubectl can change it.
    """

    watches: tuple[Resource, ...] = (NODES, PODS)

    def __init__(
        self,
        api: Api,
        rng: random.Random,
        *,
        timings: PodTimings | None = None,
        lease_period: float | None = None,
        events: bool = True,
    ) -> None:
        self._api, self._rng = api, rng
        self._lease_period = lease_period
        self._nodes: dict[str, int] = {}
        """The nodes that are played, with the number that their addresses come from."""
        self._failed: set[str] = set()
        self._next_index = 0
        self._new: dict[str, None] = {}
        self._advertised: dict[str, set[str]] = {}
        """Resources of nodes whose capacity was changed from outside, and that are to be allocatable."""
        self._timers: Timers[tuple[str, str]] = Timers()
        self._pods = HollowPods(api, rng, timings or PodTimings(), events=events)

    # -- what a person can do -----------------------------------------------------------------------------------------

    def add(self, manifests: Iterable[Object]) -> None:
        """Create nodes, with kubelets of the server's release; one that is there already is left as it is."""
        for manifest in manifests:
            if self._api.find(NODES, "", manifest["metadata"]["name"]) is None:
                node = register_node(manifest, self._next_index, self._api.stamps.now())
                node["status"]["nodeInfo"]["kubeletVersion"] = f"v{self._api.release.version}"
                self._next_index += 1
                self._api.create(NODES, "", node, manager=MANAGER)

    def fail(self, name: str) -> None:
        """Let a node fail: it renews no lease, and its pods stay as they are."""
        self._api.patch(NODES, "", name, {"metadata": {"annotations": {FAILED: "true"}}}, manager=MANAGER)

    def recover(self, name: str) -> None:
        """Let a node that failed renew its lease again."""
        self._api.patch(NODES, "", name, {"metadata": {"annotations": {FAILED: None}}}, manager=MANAGER)

    @property
    def names(self) -> list[str]:
        return list(self._nodes)

    # -- the controller -----------------------------------------------------------------------------------------------

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == PODS.path:
            # The event of a pod may come before that of its node, so all pods with a node are kept.
            if event.object["spec"].get("nodeName"):
                self._pods.observe(event)
            return
        name = event.object["metadata"]["name"]
        if event.type == "DELETED":
            if self._nodes.pop(name, None) is not None:
                self._failed.discard(name)
                self._new.pop(name, None)
                self._pods.forget_node(name)
        elif name not in self._nodes and is_hollow(event.object):
            self._adopt(event.object)
        if name in self._nodes and event.type != "DELETED":
            if event.old is not None and (names := advertised(event.old, event.object)):
                self._advertised.setdefault(name, set()).update(names)
            self._pods.observe_node(event.object)
            self._observe_failure(name, is_failed(event.object))

    def _observe_failure(self, name: str, failed: bool) -> None:
        if failed and name not in self._failed:
            self._failed.add(name)
            self._pods.pause(name)
        elif not failed and name in self._failed:
            self._failed.discard(name)
            self._new[name] = None
            self._pods.resume(name)

    def _adopt(self, node: Object) -> None:
        name = node["metadata"]["name"]
        self._nodes[name] = _index_in(node, self._next_index)
        self._next_index = max(self._next_index, self._nodes[name] + 1)
        self._new[name] = None
        self._pods.resume(name)

    def reconcile(self, now: float) -> float | None:
        for name in list(islice(self._new, _SLICE)):
            del self._new[name]
            self._register(name, now)
        for name in list(islice(self._advertised, _SLICE)):
            self._make_allocatable(name, self._advertised.pop(name), now)
        for kind, name in self._timers.due(now, most=_SLICE):
            if name in self._nodes and name not in self._failed:
                if kind == "renew":
                    self._renew(name, now)
                else:
                    self._beat(name, now)
        times = [time for time in (self._pods.reconcile(now), self._timers.next) if time is not None]
        return now if self._new or self._advertised else min(times, default=None)

    # -- staying in touch ---------------------------------------------------------------------------------------------

    @property
    def lease_period(self) -> float:
        """Seconds between renewals: with thousands of nodes each renews less often, and its lease says so."""
        if self._lease_period is not None:
            return self._lease_period
        return max(_LEASE_PERIOD, len(self._nodes) / _RENEWALS_PER_SECOND)

    def _register(self, name: str, now: float) -> None:
        """Register a node: for the first time, after a failure, or after this process was restarted."""
        node = self._api.find(NODES, "", name)
        if node is None or name not in self._nodes or name in self._failed:
            return
        if not (node.get("status") or {}).get("addresses") or not (node.get("spec") or {}).get("podCIDR"):
            self._complete(node)
        if self._api.find(CSI_NODES, "", name) is None:
            owner = owner_reference(NODES, node, controller=False)
            drivers = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"drivers": []}}
            self._api.create(CSI_NODES, "", drivers, manager=MANAGER)
        self._renew(name, now, first=True)
        if not is_true(node, "Ready"):
            self._beat(name, now)
        else:
            self._timers.at(now + self._rng.uniform(0, _HEARTBEAT), ("beat", name))

    def _complete(self, node: Object) -> None:
        """Fill in what a node that a user created lacks."""
        name = node["metadata"]["name"]
        full = register_node(node_manifest(name, self._nodes[name], node), self._nodes[name], self._api.stamps.now())
        labels = {**full["metadata"]["labels"], **(node["metadata"].get("labels") or {})}
        whole = {**node, "metadata": {**node["metadata"], "labels": labels}, "spec": full["spec"]}
        stored = self._api.update(NODES, "", name, whole, manager=MANAGER)
        wanted = {**stored, "status": full["status"]}
        self._api.update(NODES, "", name, wanted, subresource="status", manager=MANAGER)

    def _renew(self, name: str, now: float, *, first: bool = False) -> None:
        period = self.lease_period
        lease = self._api.find(LEASES, LEASE_NAMESPACE, name)
        if lease is None:
            node = self._api.get(NODES, "", name)
            self._api.create(LEASES, LEASE_NAMESPACE, lease_of(node, now, period), manager=MANAGER)
        else:
            self._api.update(LEASES, LEASE_NAMESPACE, name, renew_lease(lease, now, period), manager=MANAGER)
        # The first period is cut at a random place, so that renewals spread evenly.
        wait = self._rng.uniform(0, period) if first else period
        self._timers.at(now + wait, ("renew", name), replace=True)

    def _make_allocatable(self, name: str, resources: set[str], now: float) -> None:
        node = self._api.find(NODES, "", name)
        if node is None or name in self._failed:
            return
        capacity, allocatable = node["status"].get("capacity") or {}, node["status"].get("allocatable") or {}
        kept = {resource: amount for resource, amount in allocatable.items() if resource not in resources}
        offered = {resource: capacity[resource] for resource in sorted(resources & capacity.keys())}
        self._beat(name, now, allocatable={**kept, **offered})

    def _beat(self, name: str, now: float, **changes: Object) -> None:
        node = self._api.get(NODES, "", name)
        status = {**(node.get("status") or {}), **changes}
        conditions = ready_conditions(self._api.stamps.now(), status.get("conditions") or ())
        alive = {**node, "status": {**status, "conditions": conditions}}
        self._api.update(NODES, "", name, alive, subresource="status", manager=MANAGER)
        self._timers.at(now + _HEARTBEAT, ("beat", name), replace=True)


def _index_in(node: Object, otherwise: int) -> int:
    """The number that the addresses of a node were made from, so that a restarted process goes on with it."""
    parts = str((node.get("spec") or {}).get("podCIDR", "")).split(".")
    if len(parts) == 4 and parts[0] == "10" and parts[1].isdigit() and parts[2].isdigit() and int(parts[1]) >= 64:
        return (int(parts[1]) - 64) * 256 + int(parts[2])
    return otherwise


_PERIODS = 4
"""A lease is good for this many periods, as a kubelet's is (40 seconds, renewed every 10)."""


def lease_of(node: Object, now: float, period: float) -> Object:
    name = node["metadata"]["name"]
    reference = owner_reference(NODES, node, controller=False)
    lease = {"metadata": {"name": name, "ownerReferences": [reference]}, "spec": {"holderIdentity": name}}
    return renew_lease(lease, now, period)


def renew_lease(lease: Object, now: float, period: float) -> Object:
    spec = {**lease["spec"], "leaseDurationSeconds": ceil(_PERIODS * period), "renewTime": micro_timestamp(now)}
    return {**lease, "spec": spec}

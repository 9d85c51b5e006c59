"""Node leases: the signs of life in kube-node-lease."""

from __future__ import annotations

from math import ceil

from kubesched.api.kinds import NODES, Object
from kubesched.kube.timestamps import micro_time
from kubesched.sandbox.controllers.node_lifecycle import LEASE_NAMESPACE
from kubesched.sandbox.controllers.ownership import owner_reference

__all__ = ["LEASE_NAMESPACE", "lease_of", "renewed"]

_PERIODS = 4
"""A lease is good for this many periods, as a kubelet's is (40 seconds, renewed every 10)."""


def lease_of(node: Object, now: float, period: float) -> Object:
    name = node["metadata"]["name"]
    reference = owner_reference(NODES, node, controller=False)
    lease = {"metadata": {"name": name, "ownerReferences": [reference]}, "spec": {"holderIdentity": name}}
    return renewed(lease, now, period)


def renewed(lease: Object, now: float, period: float) -> Object:
    spec = {**lease["spec"], "leaseDurationSeconds": ceil(_PERIODS * period), "renewTime": micro_time(now)}
    return {**lease, "spec": spec}

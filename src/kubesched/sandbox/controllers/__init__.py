"""The controllers of a cluster: of workloads, volumes, devices, nodes and garbage.

Each is a plain object that observes events and reconciles when called with the time; live, one task drives them all.
"""

from __future__ import annotations

from kubesched.api.kinds import CONTROLLER_REVISIONS, JOBS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Object
from kubesched.sandbox.api import Api
from kubesched.sandbox.controllers.autoscalers import Autoscalers
from kubesched.sandbox.controllers.controller import Controller, KeyedController
from kubesched.sandbox.controllers.cron_jobs import CronJobs
from kubesched.sandbox.controllers.daemon_sets import DaemonSets
from kubesched.sandbox.controllers.deployments import Deployments
from kubesched.sandbox.controllers.disruption_budgets import DisruptionBudgets
from kubesched.sandbox.controllers.events import EventExpiry
from kubesched.sandbox.controllers.garbage import GarbageCollector, PodGarbage
from kubesched.sandbox.controllers.jobs import Jobs
from kubesched.sandbox.controllers.node_lifecycle import GRACE, NodeLifecycle, TaintEviction
from kubesched.sandbox.controllers.ownership import Grouped, Owned
from kubesched.sandbox.controllers.pod_groups import PodGroupProtection
from kubesched.sandbox.controllers.replica_sets import ReplicaSets
from kubesched.sandbox.controllers.resource_claims import ResourceClaims
from kubesched.sandbox.controllers.resource_quotas import ResourceQuotas
from kubesched.sandbox.controllers.runner import Dispatch, Runner
from kubesched.sandbox.controllers.stateful_sets import StatefulSets
from kubesched.sandbox.controllers.volumes import EphemeralVolumes, Volumes

__all__ = ["Controller", "Dispatch", "KeyedController", "Runner", "standard_controllers"]


def standard_controllers(api: Api, *, node_grace: float = GRACE, job_groups: bool = False) -> list[Controller]:
    """All controllers of a cluster, for a Runner to drive. `node_grace`: seconds until a silent node is lost.

    With `job_groups`, Jobs make pod groups where their pods run all or not at all.
    """
    pods, replica_sets, revisions = Owned(api, PODS), Owned(api, REPLICA_SETS), Owned(api, CONTROLLER_REVISIONS)
    pods_by_node = Grouped(api, PODS, _node_of)
    return [
        Deployments(api, pods, replica_sets),
        ReplicaSets(api, pods),
        ReplicaSets(api, pods, REPLICATION_CONTROLLERS),
        StatefulSets(api, pods, revisions),
        DaemonSets(api, pods, revisions),
        Jobs(api, pods, makes_groups=job_groups),
        CronJobs(api, Owned(api, JOBS)),
        Autoscalers(api),
        DisruptionBudgets(api),
        EphemeralVolumes(api),
        Volumes(api),
        ResourceClaims(api),
        ResourceQuotas(api),
        PodGroupProtection(api),
        NodeLifecycle(api, pods_by_node, grace=node_grace),
        TaintEviction(api, pods_by_node),
        GarbageCollector(api),
        PodGarbage(api),
        EventExpiry(api),
    ]


def _node_of(pod: Object) -> tuple[str, ...]:
    node = pod["spec"].get("nodeName")
    return (node,) if node else ()

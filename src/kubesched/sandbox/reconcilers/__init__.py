"""The controllers of the sandbox: reconcilers of workloads, volumes, devices, nodes and garbage.

Each is a plain object that observes events and reconciles when called with the time; live, one task drives them all.
Which objects they create is decided by pure functions in `kubesched.controllers`, which simulations call as well.
"""

from __future__ import annotations

from kubesched.api.kinds import CONTROLLER_REVISIONS, JOBS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Object
from kubesched.sandbox.api import Api
from kubesched.sandbox.reconcilers.autoscalers import Autoscalers
from kubesched.sandbox.reconcilers.cron_jobs import CronJobs
from kubesched.sandbox.reconcilers.daemon_sets import DaemonSets
from kubesched.sandbox.reconcilers.deployments import Deployments
from kubesched.sandbox.reconcilers.disruption_budgets import DisruptionBudgets
from kubesched.sandbox.reconcilers.events import EventExpiry
from kubesched.sandbox.reconcilers.garbage import GarbageCollector, PodGarbage, PodGroupProtection
from kubesched.sandbox.reconcilers.jobs import Jobs
from kubesched.sandbox.reconcilers.node_lifecycle import GRACE, NodeLifecycle, TaintEviction
from kubesched.sandbox.reconcilers.ownership import Grouped, Owned
from kubesched.sandbox.reconcilers.reconciler import KeyedReconciler, Reconciler
from kubesched.sandbox.reconcilers.replica_sets import ReplicaSets
from kubesched.sandbox.reconcilers.resource_claims import ResourceClaims
from kubesched.sandbox.reconcilers.resource_quotas import ResourceQuotas
from kubesched.sandbox.reconcilers.runner import Dispatch, Runner
from kubesched.sandbox.reconcilers.stateful_sets import StatefulSets
from kubesched.sandbox.reconcilers.volumes import EphemeralVolumes, PersistentVolumes

__all__ = ["Dispatch", "KeyedReconciler", "Reconciler", "Runner", "standard_reconcilers"]


def standard_reconcilers(api: Api, *, node_grace: float = GRACE, job_groups: bool = False) -> list[Reconciler]:
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
        PersistentVolumes(api),
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

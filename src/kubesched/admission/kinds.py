"""From kinds to their rules."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.admission import (
    configuration,
    definitions,
    devices,
    jobs,
    nodes,
    pods,
    policy,
    services,
    storage,
    volumes,
    workloads,
)
from kubesched.admission.rules import Rules
from kubesched.api import kinds
from kubesched.api.kinds import Resource

CUSTOM = Rules(counts_generations=True)
"""For custom resources, whose meaning only their owners know."""

REVIEWS = tuple(resource for resource in kinds.BUILT_IN.values() if resource.kind.endswith("Review"))
"""Questions that are answered and not stored."""

RULES: Mapping[Resource, Rules] = {
    kinds.NAMESPACES: nodes.NAMESPACE,
    kinds.NODES: nodes.NODE,
    kinds.PODS: pods.RULES,
    kinds.SERVICES: services.RULES,
    kinds.PERSISTENT_VOLUMES: volumes.VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIMS: volumes.CLAIM,
    kinds.REPLICATION_CONTROLLERS: workloads.REPLICATION_CONTROLLER,
    kinds.CORE_EVENTS: configuration.EVENT,
    kinds.CONFIG_MAPS: configuration.CONFIG_MAP,
    kinds.SECRETS: configuration.SECRET,
    kinds.SERVICE_ACCOUNTS: Rules(),
    kinds.DEPLOYMENTS: workloads.DEPLOYMENT,
    kinds.REPLICA_SETS: workloads.REPLICA_SET,
    kinds.STATEFUL_SETS: workloads.STATEFUL_SET,
    kinds.DAEMON_SETS: workloads.DAEMON_SET,
    kinds.CONTROLLER_REVISIONS: workloads.CONTROLLER_REVISION,
    kinds.JOBS: jobs.RULES,
    kinds.POD_DISRUPTION_BUDGETS: policy.DISRUPTION_BUDGET,
    kinds.PRIORITY_CLASSES: policy.PRIORITY_CLASS,
    kinds.STORAGE_CLASSES: storage.CLASS,
    kinds.CSI_NODES: storage.CSI_NODE,
    kinds.CSI_DRIVERS: storage.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITIES: storage.CSI_CAPACITY,
    kinds.VOLUME_ATTACHMENTS: storage.ATTACHMENT,
    kinds.LEASES: policy.LEASE,
    kinds.EVENTS: configuration.EVENT,
    kinds.RESOURCE_SLICES: devices.SLICE,
    kinds.RESOURCE_CLAIMS: devices.CLAIM,
    kinds.RESOURCE_CLAIM_TEMPLATES: devices.TEMPLATE,
    kinds.DEVICE_CLASSES: devices.CLASS,
    kinds.CUSTOM_RESOURCE_DEFINITIONS: definitions.RULES,
    **{review: Rules() for review in REVIEWS},
}
"""The rules of every kind that is admitted without a CustomResourceDefinition."""

SERVED = tuple(RULES)
"""The resources that a sandbox serves out of the box."""

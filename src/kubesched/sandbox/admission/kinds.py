"""From kinds to their rules."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api import kinds
from kubesched.api.kinds import CONTROLLER_REVISIONS, Resource
from kubesched.sandbox.admission import (
    configuration,
    definitions,
    devices,
    jobs,
    nodes,
    pods,
    policy,
    services,
    workloads,
)
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.admission.storage import claims, classes
from kubesched.sandbox.served import REVIEWS

CUSTOM = Rules(counts_generations=True)
"""For custom resources, whose meaning only their owners know."""

_SPECIAL: Mapping[Resource, Rules] = {
    kinds.CONFIG_MAPS: configuration.CONFIG_MAP,
    CONTROLLER_REVISIONS: workloads.CONTROLLER_REVISION,
    kinds.CORE_EVENTS: configuration.EVENT,
    kinds.CSI_DRIVERS: classes.CSI_DRIVER,
    kinds.CSI_NODES: classes.CSI_NODE,
    kinds.CSI_STORAGE_CAPACITIES: classes.CSI_CAPACITY,
    kinds.CUSTOM_RESOURCE_DEFINITIONS: definitions.RULES,
    kinds.DAEMON_SETS: workloads.DAEMON_SET,
    kinds.DEPLOYMENTS: workloads.DEPLOYMENT,
    kinds.DEVICE_CLASSES: devices.CLASS,
    kinds.EVENTS: configuration.EVENT,
    kinds.JOBS: jobs.RULES,
    kinds.LEASES: policy.LEASE,
    kinds.NAMESPACES: nodes.NAMESPACE,
    kinds.NODES: nodes.NODE,
    kinds.PERSISTENT_VOLUMES: claims.VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIMS: claims.CLAIM,
    kinds.PODS: pods.RULES,
    kinds.POD_DISRUPTION_BUDGETS: policy.DISRUPTION_BUDGET,
    kinds.PRIORITY_CLASSES: policy.PRIORITY_CLASS,
    kinds.REPLICATION_CONTROLLERS: workloads.REPLICATION_CONTROLLER,
    kinds.REPLICA_SETS: workloads.REPLICA_SET,
    kinds.RESOURCE_CLAIMS: devices.CLAIM,
    kinds.RESOURCE_CLAIM_TEMPLATES: devices.TEMPLATE,
    kinds.RESOURCE_SLICES: devices.SLICE,
    kinds.SECRETS: configuration.SECRET,
    kinds.SERVICES: services.RULES,
    kinds.SERVICE_ACCOUNTS: configuration.SERVICE_ACCOUNT,
    kinds.STATEFUL_SETS: workloads.STATEFUL_SET,
    kinds.STORAGE_CLASSES: classes.CLASS,
    kinds.VOLUME_ATTACHMENTS: classes.ATTACHMENT,
}

RULES: Mapping[Resource, Rules] = {**_SPECIAL, **{review: Rules() for review in REVIEWS}}
"""The rules of every kind that is served out of the box."""

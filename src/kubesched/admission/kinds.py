"""From kinds to their rules, and which of them are served."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubesched.admission import (
    autoscaling,
    configuration,
    definitions,
    devices,
    jobs,
    limits,
    names,
    nodes,
    pod_groups,
    pods,
    policy,
    quotas,
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

_STABLE = tuple(
    resource
    for resource in kinds.BUILT_IN.values()
    if re.fullmatch("v[0-9]+", resource.version) and resource.kind not in ("Binding", "ComponentStatus")
)

SERVED = (*_STABLE, kinds.POD_GROUPS, kinds.WORKLOADS)
"""The resources that a sandbox serves out of the box: all that are stable, as with a server that is told nothing, and
those by which pods are scheduled together."""

REVIEWS = tuple(resource for resource in SERVED if resource.kind.endswith("Review"))
"""Questions that are answered and not stored."""

_SPECIAL: Mapping[Resource, Rules] = {
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
    kinds.LIMIT_RANGES: limits.RULES,
    kinds.RESOURCE_QUOTAS: quotas.RULES,
    kinds.DEPLOYMENTS: workloads.DEPLOYMENT,
    kinds.REPLICA_SETS: workloads.REPLICA_SET,
    kinds.STATEFUL_SETS: workloads.STATEFUL_SET,
    kinds.DAEMON_SETS: workloads.DAEMON_SET,
    kinds.CONTROLLER_REVISIONS: workloads.CONTROLLER_REVISION,
    kinds.JOBS: jobs.RULES,
    kinds.CRON_JOBS: jobs.CRON_JOB,
    kinds.AUTOSCALERS: autoscaling.RULES,
    kinds.OLDER_AUTOSCALERS: autoscaling.OLDER,
    kinds.INGRESSES: services.INGRESS,
    kinds.NETWORK_POLICIES: services.POLICY,
    kinds.CERTIFICATE_SIGNING_REQUESTS: definitions.SIGNING_REQUEST,
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
    kinds.POD_GROUPS: pod_groups.POD_GROUP,
    kinds.WORKLOADS: pod_groups.WORKLOAD,
}

_COUNTING = frozenset(("FlowSchema", "PriorityLevelConfiguration", *definitions.WEBHOOKS, *definitions.POLICIES))
"""Kinds without rules of their own that count generations."""


def _plain(resource: Resource) -> Rules:
    # Roles and their bindings are named by paths: system:node, for example.
    name = names.path_segment if resource.group == "rbac.authorization.k8s.io" else names.subdomain
    return Rules(name=name, counts_generations=resource.kind in _COUNTING)


RULES: Mapping[Resource, Rules] = {resource: _SPECIAL.get(resource) or _plain(resource) for resource in SERVED}
"""The rules of every kind that is admitted without a CustomResourceDefinition."""

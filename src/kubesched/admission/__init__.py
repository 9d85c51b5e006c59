"""What the API server does to an object between a client and the store: defaults, admission, validation.

Pure functions on JSON. The types of all fields are checked once, against the table in `schemas`; all that comes after
may rely on them. The sandbox admits what clients send, and the offline commands what is in manifests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubesched.admission import core, definitions, devices, jobs, limits, names, pods, policy, storage, workloads
from kubesched.admission.reading import copy_field, ensure_mapping, fresh_copy, metadata_of, value_at
from kubesched.admission.rules import Mistakes, Reader, Rules, check_metadata, check_metadata_update
from kubesched.admission.schemas import decoding_error, field_mistakes
from kubesched.api import kinds
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PODS, Object, Resource
from kubesched.api.release import Release
from kubesched.api.schema import Mistake

__all__ = [
    "NEWER",
    "REVIEWS",
    "SERVED",
    "admit_create",
    "admit_update",
    "deletion_grace",
    "examine",
    "served_by",
]


CUSTOM = Rules(counts_generations=True)
"""For custom resources, whose meaning only their owners know."""

_STABLE = tuple(
    resource
    for resource in kinds.BUILT_IN.values()
    if re.fullmatch("v[0-9]+", resource.version) and resource.kind not in ("Binding", "ComponentStatus")
)

SERVED = (*_STABLE, kinds.POD_GROUPS, kinds.WORKLOADS)
"""The resources that a sandbox stores out of the box: the stable ones, which an API server serves by default, and those
by which pods are scheduled together."""

NEWER = (kinds.POD_GROUPS_BY_VERSION[0], kinds.WORKLOADS_BY_VERSION[0])
"""PodGroup and Workload in their newer version."""


def served_by(release: Release) -> tuple[Resource, ...]:
    """What a sandbox of the release serves."""
    return tuple(resource for resource in (*SERVED, *NEWER) if resource in kinds.BUILT_INTO[release.name])


REVIEWS = tuple(resource for resource in SERVED if resource.kind.endswith("Review"))
"""Reviews, such as TokenReview, which are answered and not stored."""

_SPECIAL: Mapping[Resource, Rules] = {
    kinds.NAMESPACES: core.NAMESPACE,
    kinds.NODES: core.NODE,
    kinds.PODS: pods.RULES,
    kinds.SERVICES: core.SERVICE,
    kinds.PERSISTENT_VOLUMES: storage.VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIMS: storage.CLAIM,
    kinds.REPLICATION_CONTROLLERS: workloads.REPLICATION_CONTROLLER,
    kinds.CORE_EVENTS: core.EVENT,
    kinds.CONFIG_MAPS: core.CONFIG_MAP,
    kinds.SECRETS: core.SECRET,
    kinds.LIMIT_RANGES: limits.LIMIT_RANGE,
    kinds.RESOURCE_QUOTAS: limits.RESOURCE_QUOTA,
    kinds.DEPLOYMENTS: workloads.DEPLOYMENT,
    kinds.REPLICA_SETS: workloads.REPLICA_SET,
    kinds.STATEFUL_SETS: workloads.STATEFUL_SET,
    kinds.DAEMON_SETS: workloads.DAEMON_SET,
    kinds.CONTROLLER_REVISIONS: workloads.CONTROLLER_REVISION,
    kinds.JOBS: jobs.RULES,
    kinds.CRON_JOBS: jobs.CRON_JOB,
    kinds.AUTOSCALERS: policy.AUTOSCALER,
    kinds.OLDER_AUTOSCALERS: policy.OLDER_AUTOSCALER,
    kinds.INGRESSES: core.INGRESS,
    kinds.NETWORK_POLICIES: core.NETWORK_POLICY,
    kinds.CERTIFICATE_SIGNING_REQUESTS: definitions.SIGNING_REQUEST,
    kinds.POD_DISRUPTION_BUDGETS: policy.DISRUPTION_BUDGET,
    kinds.PRIORITY_CLASSES: policy.PRIORITY_CLASS,
    kinds.STORAGE_CLASSES: storage.CLASS,
    kinds.CSI_NODES: storage.CSI_NODE,
    kinds.CSI_DRIVERS: storage.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITIES: storage.CSI_CAPACITY,
    kinds.VOLUME_ATTACHMENTS: storage.ATTACHMENT,
    kinds.LEASES: policy.LEASE,
    kinds.EVENTS: core.EVENT,
    kinds.RESOURCE_SLICES: devices.SLICE,
    kinds.RESOURCE_CLAIMS: devices.CLAIM,
    kinds.RESOURCE_CLAIM_TEMPLATES: devices.TEMPLATE,
    kinds.DEVICE_CLASSES: devices.CLASS,
    kinds.CUSTOM_RESOURCE_DEFINITIONS: definitions.RULES,
    kinds.POD_GROUPS: policy.POD_GROUP,
    kinds.WORKLOADS: policy.WORKLOAD,
    NEWER[0]: policy.NEWER_POD_GROUP,
    NEWER[1]: policy.NEWER_WORKLOAD,
}

_COUNTING = frozenset(("FlowSchema", "PriorityLevelConfiguration", *definitions.WEBHOOKS, *definitions.POLICIES))
"""Kinds without rules of their own that count generations."""


def _rules_of_plain_kind(resource: Resource) -> Rules:
    # The names of roles and their bindings may hold colons: system:node, for example.
    name = names.path_segment if resource.group == "rbac.authorization.k8s.io" else names.subdomain
    return Rules(name=name, counts_generations=resource.kind in _COUNTING)


RULES: Mapping[Resource, Rules] = {
    resource: _SPECIAL.get(resource) or _rules_of_plain_kind(resource) for resource in (*SERVED, *NEWER)
}
"""The rules of every kind that is admitted without a CustomResourceDefinition."""


# -- the way of a write -----------------------------------------------------------------------------------------------


_FRAME = frozenset(("apiVersion", "kind", "metadata", "status"))
"""Fields of every kind; a change of any other field raises metadata.generation."""


def admit_create(resource: Resource, obj: Object, reader: Reader) -> Object:
    """The new object as it is to be stored, with everything filled in. Raises ApiError for what is wrong."""
    rules = RULES.get(resource, CUSTOM)
    new = _typed_copy(resource, rules, obj)
    metadata = ensure_mapping(new, "metadata")
    mistakes = Mistakes()
    _complete_and_check(resource, rules, new, reader, mistakes)
    mistakes.raise_for(resource, new)
    if "status" in resource.subresources and rules.new_status is not None:
        new.pop("status", None)
        if status := rules.new_status(new):
            new["status"] = status
    if rules.counts_generations:
        metadata["generation"] = 1
    else:
        metadata.pop("generation", None)
    return new


def examine(resource: Resource, obj: Object, reader: Reader) -> tuple[Object, list[Mistake]]:
    """A new object with everything filled in but its status, and all that is wrong with it.

    For callers that read manifests rather than requests. The types of the fields must be right already.
    """
    new, mistakes = fresh_copy(obj), Mistakes()
    ensure_mapping(new, "metadata")
    _complete_and_check(resource, RULES.get(resource, CUSTOM), new, reader, mistakes)
    return new, mistakes.all()


def _complete_and_check(resource: Resource, rules: Rules, new: Object, reader: Reader, mistakes: Mistakes) -> None:
    rules.complete(new)
    try:
        rules.admit(new, reader)
    except ApiError as error:
        mistakes.refusal = error
    if "get" in resource.verbs:  # reviews are answered, never stored, and have no name
        check_metadata(resource, new, rules.name, mistakes)
    rules.check(new, mistakes)
    rules.check_create(new, mistakes)


def admit_update(resource: Resource, old: Object, new: Object, subresource: str, reader: Reader) -> Object:
    """The object as it is to be stored: `new` in the fields that this write may change, `old` in the rest."""
    rules = RULES.get(resource, CUSTOM)
    written = _typed_copy(resource, rules, new, status_only=subresource == "status")
    ensure_mapping(written, "metadata")
    mistakes = Mistakes()
    check_metadata_update(written, old, mistakes)
    result = _merge_write(resource, rules, old, written, subresource, mistakes)
    check_metadata(resource, result, rules.name, mistakes)
    if subresource != "status":
        rules.check(result, mistakes)
        if subresource not in rules.subresource_writes:
            for field in rules.immutable:
                path = field.split(".")
                mistakes.immutable(field, value_at(result, *path), value_at(old, *path))
            rules.check_update(result, old, mistakes)
            try:
                rules.admit_update(result, old, reader)
            except ApiError as error:
                mistakes.refusal = error
    mistakes.raise_for(resource, result)
    _count_generation(rules, result, old)
    return result


def _typed_copy(resource: Resource, rules: Rules, obj: Object, *, status_only: bool = False) -> Object:
    """What the client sent, to be changed freely, once every field has the type that the table says.

    Statuses are written all the time, so of a write to the status only it and the metadata are copied.
    """
    if status_only:
        obj = {key: obj[key] for key in ("metadata", "status") if key in obj}
    copy = fresh_copy(obj, keep_nulls=rules is CUSTOM)
    if error := decoding_error(resource, field_mistakes(resource, copy)):
        raise error
    return copy


def _merge_write(
    resource: Resource, rules: Rules, old: Object, written: Object, subresource: str, mistakes: Mistakes
) -> Object:
    if subresource in rules.subresource_writes:
        rules.complete(written)
        return rules.subresource_writes[subresource](written, old, mistakes)
    if subresource == "status":
        result = {**old, "metadata": written["metadata"]}
        if rules is CUSTOM:
            result["metadata"] = _metadata_of_status_write(written, old)
        copy_field(result, written, "status")
        return result
    rules.complete(written)
    rules.carry_over(written, old)
    if "status" in resource.subresources:
        copy_field(written, old, "status")
    return written


def _metadata_of_status_write(written: Object, old: Object) -> Object:
    """The status of a custom resource is written without its metadata, but for what tracks the write itself."""
    metadata = dict(metadata_of(old))
    for key in ("resourceVersion", "managedFields"):
        if key in written["metadata"]:
            metadata[key] = written["metadata"][key]
    return metadata


def _count_generation(rules: Rules, new: Object, old: Object) -> None:
    metadata = new["metadata"] = dict(new["metadata"])
    copy_field(metadata, metadata_of(old), "generation")
    if rules.counts_generations and _without_frame(new) != _without_frame(old):
        metadata["generation"] = metadata.get("generation", 0) + 1


def _without_frame(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in _FRAME}


def deletion_grace(resource: Resource, obj: Object, requested: int | None) -> int:
    """Seconds until an object that is deleted now should be gone; 0 if the deletion removes it at once."""
    return pods.deletion_grace(obj, requested) if resource == PODS else 0

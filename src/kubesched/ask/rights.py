"""The RBAC rights that each step needs: to ask questions, to run in shadow mode, to schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubesched.api.kinds import KINDS, WATCHED, Kind, Resource
from kubesched.simulate.kinds import kinds_read

ROLE_API = "rbac.authorization.k8s.io/v1"
SYSTEM = "kube-system"
FOLLOWED = ("list", "watch")
STEPS = {
    "ask": "questions to the cluster: explain, place, what-if, capacity, plan, check, snapshot, serve, ui, mcp",
    "shadow": "kubesched run --shadow: look on, and write nothing",
    "run": "kubesched run: schedule",
}


class Right(NamedTuple):
    """What may be done with one resource."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


_REVIEWS = (
    Right("authentication.k8s.io", "tokenreviews", ("create",)),
    Right("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
"""Questions about who may read the endpoints. They store nothing."""
_AUTHORITIES = Right("", "configmaps", ("get", "list", "watch"), ("extension-apiserver-authentication",))
"""Whose client certificates the endpoints accept."""
_WRITTEN = (
    Right("", "pods", ("get", "delete")),
    Right("", "pods/binding", ("create",)),
    Right("", "pods/status", ("patch",)),
    Right("", "persistentvolumes", ("get", "patch")),
    Right("", "persistentvolumeclaims", ("get", "patch")),
    Right("events.k8s.io", "events", ("create", "patch")),
    Right("resource.k8s.io", "resourceclaims", ("get", "create", "update", "patch", "delete")),
    Right("resource.k8s.io", "resourceclaims/status", ("patch",)),
    Right("resource.k8s.io", "resourceclaims/binding", ("patch",)),
)
"""`get` is for when an answer to a write got lost; `resourceclaims/binding` is asked for by a write of their status."""
_PROXY = Right("", "pods/proxy", ("get",))
"""To find the configuration of the scheduler in charge. Without it --config has to be given."""


def cluster_rights(step: str, *, pod_groups: bool = False) -> list[Right]:
    """The rights of the ClusterRole."""
    if step == "ask":
        return [_right_to_watch(kind.resource) for kind in kinds_read(workloads=True).values()]
    kinds: Iterable[Kind] = (*WATCHED, KINDS["DeviceTaintRule"], *((KINDS["PodGroup"],) if pod_groups else ()))
    rights = [*(_right_to_watch(kind.resource) for kind in kinds), *_REVIEWS]
    if step == "run":
        rights += _WRITTEN
        rights += [Right("scheduling.k8s.io", "podgroups/status", ("patch",))] if pod_groups else []
    return rights


def system_rights(step: str, lease: str = "kubesched") -> list[Right]:
    """The rights of the Role in kube-system."""
    if step == "ask":
        return [_PROXY]
    leases = [
        Right("coordination.k8s.io", "leases", ("create",)),
        Right("coordination.k8s.io", "leases", ("get", "update"), (lease,)),
    ]
    return [_AUTHORITIES, *(leases if step == "run" else ())]


def _right_to_watch(resource: Resource) -> Right:
    return Right(resource.group, resource.plural, FOLLOWED)


def rules(rights: Sequence[Right]) -> list[dict[str, Any]]:
    """As rules of a role: resources of a group with the same verbs are one rule."""
    verbs: dict[tuple[str, str, tuple[str, ...]], dict[str, None]] = {}
    for right in rights:
        verbs.setdefault((right.group, right.resource, right.names), {}).update(dict.fromkeys(right.verbs))
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, names), allowed in verbs.items():
        alike.setdefault((group, tuple(allowed), names), []).append(resource)
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": list(allowed)}
        | ({"resourceNames": list(names)} if names else {})
        for (group, allowed, names), resources in alike.items()
    ]


def roles(step: str, *, lease: str = "kubesched", pod_groups: bool = False) -> list[dict[str, Any]]:
    """A ClusterRole, and a Role in kube-system, for kubectl to apply."""
    name = f"kubesched-{step}"
    everywhere = rules(cluster_rights(step, pod_groups=pod_groups))
    return [
        {"apiVersion": ROLE_API, "kind": "ClusterRole", "metadata": {"name": name}, "rules": everywhere},
        {
            "apiVersion": ROLE_API,
            "kind": "Role",
            "metadata": {"name": name, "namespace": SYSTEM},
            "rules": rules(system_rights(step, lease)),
        },
    ]


def bindings(step: str, subject: dict[str, str]) -> list[dict[str, Any]]:
    """The bindings of these roles to a user or a service account."""
    name, documents = f"kubesched-{step}", list[dict[str, Any]]()
    for kind in ("ClusterRole", "Role"):
        metadata = {"name": name} | ({"namespace": SYSTEM} if kind == "Role" else {})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding = {"apiVersion": ROLE_API, "kind": f"{kind}Binding", "metadata": metadata}
        documents.append({**binding, "roleRef": reference, "subjects": [subject]})
    return documents

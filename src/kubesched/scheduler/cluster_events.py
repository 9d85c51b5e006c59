"""The events that a change of a node or a pod amounts to, as plugins wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.quantity import parse_quantity
from kubesched.api.release import Release
from kubesched.api.requests import Quantities, pod_requests
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.framework.events import Action, ClusterEvent, Kind

event_of = cache(ClusterEvent)
"""Nearly every change is an event, and there are few different ones: each object is made once."""

ASSIGNED_POD_ADDED = ClusterEvent(Kind.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_UPDATED = ClusterEvent(Kind.ASSIGNED_POD, Action.UPDATE)
ASSIGNED_POD_DELETED = ClusterEvent(Kind.ASSIGNED_POD, Action.DELETE)
NODE_ADDED = ClusterEvent(Kind.NODE, Action.ADD)
NODE_DELETED = ClusterEvent(Kind.NODE, Action.DELETE)

# Events of the queue itself; the last three are only labels.
WAITED_TOO_LONG = ClusterEvent(Kind.ANY, Action.ALL, "UnschedulableTimeout")
FORCED = ClusterEvent(Kind.ANY, Action.ALL, "ForceActivate")
ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"


class PendingPodEvents:
    """Events about pods without a node, by the names that a release has for them."""

    def __init__(self, release: Release) -> None:
        self.kind = Kind.UNSCHEDULED_POD if release.pod_events_split else Kind.PENDING_POD
        self.added = event_of(self.kind, Action.ADD)
        self.updated = event_of(self.kind, Action.UPDATE)
        self.deleted = event_of(self.kind, Action.DELETE)


def node_events(old: Node, new: Node, features: Features = DEFAULT_FEATURES) -> list[ClusterEvent]:
    """One event per kind of change. Uncordoning counts as a change of taints; cordoning helps no pod."""
    actions = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(Action.UPDATE_NODE_TAINT)
    if _amounts(old) != _amounts(new):
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        actions.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        actions.append(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if features.declared_features and old.status.declared_features != new.status.declared_features:
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return [event_of(Kind.NODE, action) for action in actions]


def pod_events(old: Pod, new: Pod, features: Features = DEFAULT_FEATURES) -> list[ClusterEvent]:
    """One event per kind of change; a plain update if the change is none that plugins register.

    The kind of an event about a pod without a node is TARGET_POD: plugins compare it with the pod that waits.
    """
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    actions += _scaling_actions(old, new, features)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if _generated_claims(old) != _generated_claims(new):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    pending = Kind.TARGET_POD if features.release.pod_events_split else Kind.PENDING_POD
    kind = Kind.ASSIGNED_POD if new.spec.node_name else pending
    return [event_of(kind, action) for action in actions or [Action.UPDATE]]


def _generated_claims(pod: Pod) -> tuple[object, ...]:
    """The resource claims made for a pod: from templates, and for extended resources."""
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status


def _scaling_actions(old: Pod, new: Pod, features: Features) -> Iterator[Action]:
    if _resource_fields(old) == _resource_fields(new):
        return
    before, after = (
        pod_requests(
            pod,
            from_status=True,
            pod_level_resize=features.pod_level_resize,
            resize_by_pod=features.release.resize_by_pod,
        )
        for pod in (old, new)
    )
    if _exceeds(before, after):
        yield Action.UPDATE_POD_SCALE_DOWN
    if features.release.pod_events_split and _exceeds(after, before):
        yield Action.UPDATE_POD_SCALE_UP


def _exceeds(one: Quantities, other: Quantities) -> bool:
    return any(name not in other or amount.milli() > other[name].milli() for name, amount in one.items())


def _resource_fields(pod: Pod) -> tuple[object, ...]:
    """The fields that requests follow from. Most updates, such as of a condition, change none of them."""
    spec, status = pod.spec, pod.status
    actual = (status.container_statuses, status.init_container_statuses, status.resources)
    return spec, actual, (status.allocated_resources, status.conditions) if any(actual) else ()


def _amounts(node: Node) -> dict[str, int]:
    return {name: parse_quantity(text).nano() for name, text in node.status.allocatable.items()}


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}

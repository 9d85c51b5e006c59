"""The words in which plugins say what they wait for, and the questions that many of their hints begin with."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.framework.events import Action, ClusterEvent, Hint, HintFunction, Interest, Kind, Lookup
from kubesched.plugins.shared.volume_claims import claims_used
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import claim_names


def waits_for(kind: Kind, action: Action, hint: HintFunction | None = None, lookup: Lookup | None = None) -> Interest:
    """An interest in such events; without a hint each of them helps."""
    return Interest(ClusterEvent(kind, action), hint, lookup)


def queue_if(it_may_help: bool) -> Hint:
    return Hint.QUEUE if it_may_help else Hint.SKIP


def is_same_pod(pod: Pod, other: Pod) -> bool:
    return pod.identity == other.identity


def has_node(pod: Pod) -> bool:
    """Whether it is on a node, or is nominated to one: then others make way for it."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def after_own_change(pod: Pod, old: Pod, new: Pod, state: ClusterState) -> Hint:
    """The waiting pod itself changed."""
    return queue_if(is_same_pod(pod, new))


def after_named_claim(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim, state: ClusterState
) -> Hint:
    """A claim came or changed that the pod names."""
    return queue_if(pod.namespace == new.namespace and new.name in claim_names(pod))


def after_used_claim(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim, state: ClusterState
) -> Hint:
    """A claim came or changed that the pod names, or that an ephemeral volume of it makes."""
    return queue_if(pod.namespace == new.namespace and any(use.name == new.name for use in claims_used(pod)))


_OF_EPHEMERAL_VOLUMES = "claims of ephemeral volumes"
"""Their names come from the names of pods, which equivalent pods do not share."""


def _claims_waited_for(pod: Pod, state: ClusterState) -> Iterator[Hashable]:
    yield from (f"{pod.namespace}/{name}" for name in claim_names(pod))
    if any(volume.ephemeral is not None for volume in pod.spec.volumes):
        yield _OF_EPHEMERAL_VOLUMES


def _claim_brought(
    old: PersistentVolumeClaim | None, new: PersistentVolumeClaim, state: ClusterState
) -> Iterator[Hashable]:
    yield new.key
    yield _OF_EPHEMERAL_VOLUMES


CLAIMS = Lookup(_claims_waited_for, _claim_brought)
"""For `after_named_claim` and `after_used_claim`."""

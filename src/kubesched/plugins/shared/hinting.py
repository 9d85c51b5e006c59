"""How plugins register the events they wait for, and the checks that many of their hints begin with."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache

from kubesched.api.pod import Pod
from kubesched.api.release import Release
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.framework.events import Action, ClusterEvent, Hint, HintFunction, Interest, Kind, Lookup
from kubesched.plugins.shared.volume_claims import claims_used
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import claim_names

_NONE = Action(0)
_event = cache(ClusterEvent)


def waits_for(kind: Kind, action: Action, hint: HintFunction | None = None, lookup: Lookup | None = None) -> Interest:
    """An interest in such events; without a hint each of them helps."""
    return Interest(_event(kind, action), hint, lookup)


def waits_for_pods(
    release: Release,
    *,
    placed: Action = _NONE,
    placed_hint: HintFunction = lambda *_: Hint.SKIP,
    lookup: Lookup | None = None,
    own: Action = _NONE,
    own_hint: HintFunction = lambda *_: Hint.QUEUE,
) -> tuple[Interest, ...]:
    """Interests in changes of placed pods, and of the waiting pod itself.

    A release without `pod_events_split` has one event for both, and its hint has to find out.
    """
    if release.pod_events_split:
        of_placed = (waits_for(Kind.ASSIGNED_POD, placed, placed_hint, lookup),) if placed else ()
        return (*of_placed, waits_for(Kind.TARGET_POD, own, own_hint)) if own else of_placed
    if not own:
        return (waits_for(Kind.POD, placed, placed_hint, lookup),)

    def hint(pod: Pod, old: Pod | None, new: Pod | None, state: ClusterState) -> Hint:
        is_own = old is not None and new is not None and is_same_pod(pod, new)
        return (own_hint if is_own else placed_hint)(pod, old, new, state)

    return (waits_for(Kind.POD, placed | own, hint, lookup),)


def queue_if(it_may_help: bool) -> Hint:
    return Hint.QUEUE if it_may_help else Hint.SKIP


def is_same_pod(pod: Pod, other: Pod) -> bool:
    return pod.identity == other.identity


def has_node(pod: Pod) -> bool:
    """Whether it is on a node, or is nominated to one: then others make way for it."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


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

"""Changes of the cluster that may help: one more node, pods that leave, volumes and claims that are there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from kubesched.api.device_claims import ResourceClaim, ResourceClaimStatus
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod import Pod
from kubesched.api.requests import is_extended, pod_requests
from kubesched.api.storage import (
    ClaimStatus,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeResources,
)
from kubesched.api.well_known import BIND_COMPLETED, DEFAULT_STORAGE_CLASS, NO_PROVISIONER, ZONE
from kubesched.framework.plugin import FilterPlugin
from kubesched.plugins.shared.devices.answers import DeviceView
from kubesched.plugins.shared.volume_claims import claims_used, class_of, is_bound
from kubesched.questions.pools import one_more, pools_of
from kubesched.questions.remedies.remedy import Edit, NewNode, Option, Sort
from kubesched.questions.remedies.trial import Trials
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod

MOST_MODELS = 30
HIGHEST_PRIORITY = 2**31 - 1
ANY_PROVISIONER = "provisioner.example.com"


# -- nodes ------------------------------------------------------------------------------------------------------------


def new_node_options(state: ClusterState) -> Iterator[Option]:
    """One more node of each pool, in each of its zones."""
    pools = pools_of(state)
    models = [(pool, model) for pool in pools for model in pool.models]
    models += [(pool, model) for pool in pools for model in pool.others]
    for place, (pool, model) in enumerate(models[:MOST_MODELS]):
        zone = model.metadata.labels.get(ZONE, "") if len(pool.models) > 1 else ""
        edits = tuple(_created(obj) for obj in one_more(state, model))
        kind = NewNode(pool.title, model.name, (zone,) if zone else ())
        yield Option(Sort.ADD_NODE, kind.text, edits, place, "new node", new=kind)


def one_per_pool(options: Iterable[Option]) -> Iterator[Option]:
    """The options, with new nodes of one pool in several zones as one that names the zones."""
    pools: dict[str, list[Option]] = {}
    for option in options:
        if option.new is None:
            yield option
        else:
            pools.setdefault(option.new.pool, []).append(option)
    for alike in pools.values():
        kinds = [option.new for option in alike if option.new is not None]
        merged = kinds[0]._replace(zones=tuple(dict.fromkeys(zone for kind in kinds for zone in kind.zones)))
        yield dataclasses.replace(alike[0], text=merged.text, new=merged)


def _created(obj: KubeObject) -> Edit:
    return Edit(None, lambda _: obj)


# -- pods that leave --------------------------------------------------------------------------------------------------


def leaving_options(pod: Pod, state: ClusterState) -> Iterator[Option]:
    """Pods that are being deleted are gone soon."""
    leaving = [placed.pod for placed in state.pods.at if placed is not None and placed.pod.is_terminating]
    if leaving:
        text = f"Wait until {_listed(leaving)} {'is' if len(leaving) == 1 else 'are'} gone: being deleted already"
        yield Option(Sort.WAIT_FOR_PODS, text, without_pods(leaving, state), len(leaving), "leaving")


def eviction_option(trials: Trials, pod: Pod) -> Option | None:
    """The pods that would have to leave if priorities did not matter: what preemption would do for the highest."""
    spec = replace(pod.spec, priority=HIGHEST_PRIORITY, preemption_policy="PreemptLowerPriority", scheduling_gates=())
    status = replace(pod.status, nominated_node_name="")
    decision = trials.decide(replace(pod, spec=spec, status=status))
    result = decision.post_filter
    if result is None or not result.nominated:
        return None
    victims = [victim.pod for victim in result.victims]
    return _eviction(victims, trials.state, result.nominated) if victims else None


def heeded_options(trials: Trials, pod: Pod, *, most: int) -> Iterator[Option]:
    """Single pods that a filter looks at, wherever they are: one that keeps the pod out of a zone need not be on the
    node that the pod goes to."""
    decision = trials.decide(replace(pod, spec=replace(pod.spec, preemption_policy="Never")))
    outcome = decision.trace.filter_outcome
    if outcome is None:
        return
    rejecting = {rejections.plugin for rejections, _ in outcome.columns}
    profile = trials.cluster.profiles[decision.profile]
    filters = [f for f in profile.at("filter", FilterPlugin) if f.name in rejecting and f.looks_at_pods]
    heeded: list[Pod] = []
    judged: dict[int, bool] = {}
    for placed in trials.state.pods.at:
        if placed is None or _is_daemon(placed):
            continue
        facts = id(placed.facts)
        if facts not in judged:
            judged[facts] = any(plugin.heeds(decision.cycle, placed) for plugin in filters)
        if judged[facts]:
            heeded.append(placed.pod)
        if len(heeded) > most:
            return
    for other in heeded:
        yield _eviction([other], trials.state, other.spec.node_name)


def _sharing_ports(victims: Sequence[Pod], state: ClusterState, node: str) -> list[Pod]:
    """Other pods there that have claimed a port of the victims; by rights there are none."""
    leaving = {victim.identity for victim in victims}
    ports = {port for victim in victims for port in state.facts(victim).ports}
    there = state.pods.pods_on(state.nodes.row_of[node])
    return [p.pod for p in there if p.pod.identity not in leaving and not ports.isdisjoint(p.facts.ports)]


def _is_daemon(placed: PlacedPod) -> bool:
    owner = placed.pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def _eviction(victims: Sequence[Pod], state: ClusterState, node: str) -> Option:
    victims = [*victims, *_sharing_ports(victims, state, node)]
    ends = [pod for pod in victims if (owner := pod.metadata.controller) is not None and owner.kind == "Job"]
    if len(ends) == len(victims):
        text = f"Wait until {_listed(victims)} on {node} {'has' if len(victims) == 1 else 'have'} ended, or evict"
        text += " it" if len(victims) == 1 else " them"
    else:
        text = f"Evict {_listed(victims)} from {node}"
    return Option(Sort.EVICT, text, without_pods(victims, state), len(victims), "evictions")


def _listed(pods: Sequence[Pod]) -> str:
    names = [pod.key for pod in pods]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def without_pods(pods: Iterable[Pod], state: ClusterState) -> tuple[Edit, ...]:
    """The pods gone, and what only they had claimed free again."""
    ledger = state.companion(DeviceView).ledger
    edits: list[Edit] = []
    for pod in pods:
        edits.append(Edit(pod, lambda _: None))
        extended = ledger.extended_claim_of(pod)
        if extended is not None:
            edits.append(Edit(extended, lambda _: None))
        names = [entry.resource_claim_name for entry in pod.spec.resource_claims]
        names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
        for name in dict.fromkeys(name for name in names if name is not None):
            claim = ledger.claim(name, pod.namespace)
            if claim is not None and claim.is_reserved_for(pod.uid):
                edits.append(Edit(claim, _released_by(pod)))
    return tuple(edits)


def _released_by(pod: Pod) -> Callable[[ResourceClaim], ResourceClaim]:
    def released(claim: ResourceClaim) -> ResourceClaim:
        others = tuple(user for user in claim.status.reserved_for if user.uid != pod.uid)
        return replace(claim, status=replace(claim.status, reserved_for=others) if others else ResourceClaimStatus())

    return released


# -- devices ----------------------------------------------------------------------------------------------------------


def device_options(pod: Pod, state: ClusterState, *, most: int) -> Iterator[Option]:
    """Devices that others hold: an idle claim gives them back, or the pods that use one leave."""
    if not pod.spec.resource_claims and not any(is_extended(name) for name in pod_requests(pod)):
        return
    claims = [claim for claim in state.objects.all(ResourceClaim) if claim.status.allocation is not None]
    placed = {each.pod.uid: each.pod for each in state.pods.at if each is not None} if claims else {}
    for claim in claims[:most]:
        users = [placed[user.uid] for user in claim.status.reserved_for if user.uid in placed]
        if not claim.status.reserved_for:
            text = f"Deallocate the claim {claim.key}, which no pod uses"
            edit = Edit(claim, lambda claim: replace(claim, status=ResourceClaimStatus()))
            yield Option(Sort.RELEASE_CLAIM, text, (edit,), 0.0, f"claim {claim.key}")
        elif users and len(users) == len(claim.status.reserved_for) and pod.uid not in placed:
            yield _eviction(users, state, users[0].spec.node_name)


# -- storage ----------------------------------------------------------------------------------------------------------


def volume_options(pod: Pod, state: ClusterState) -> Iterator[Option]:
    """Claims, classes and volumes that are missing."""
    objects = state.objects
    for use in claims_used(pod):
        claim = objects.get(PersistentVolumeClaim, use.name, pod.namespace)
        if claim is None:
            if not use.is_ephemeral:
                yield from _missing_claim(pod.namespace, use.name, state)
            continue
        if is_bound(claim):
            continue
        class_name = class_of(claim)
        if class_name and objects.get(StorageClass, class_name) is None:
            made = _new_class(class_name, state)
            text = f"Create the StorageClass {class_name}, which the claim {claim.name} asks for"
            yield Option(Sort.PROVIDE_VOLUME, text, (_created(made),), 1.0, f"class {class_name}")
        size = claim.spec.resources.requests.get("storage")
        text = f"Give the claim {claim.name} a PersistentVolume{f' of {size}' if size else ''}"
        yield Option(Sort.PROVIDE_VOLUME, text, _bound(claim), 2.0, f"claim {claim.name}")


def _missing_claim(namespace: str, name: str, state: ClusterState) -> Iterator[Option]:
    """The claim, of a class that makes volumes once a pod needs them; else one with a volume of its own."""
    classes = sorted(state.objects.all(StorageClass), key=lambda c: (not _is_default(c), c.name))
    waiting = [c for c in classes if c.volume_binding_mode == "WaitForFirstConsumer"]
    making = [c for c in waiting if c.provisioner != NO_PROVISIONER]
    for place, storage_class in enumerate(making[:3]):
        claim = _claim(namespace, name, storage_class.name)
        text = f"Create the PersistentVolumeClaim {name}, of class {storage_class.name}"
        yield Option(Sort.PROVIDE_VOLUME, text, (_created(claim),), place / 10, f"claim {name}")
    claim = _claim(namespace, name, "")
    text = f"Create the PersistentVolumeClaim {name}, with a PersistentVolume"
    edits = (_created(_as_bound(claim)), _created(_volume_for(claim)))
    yield Option(Sort.PROVIDE_VOLUME, text, edits, 1.0, f"claim {name}")


def _is_default(storage_class: StorageClass) -> bool:
    return storage_class.metadata.annotations.get(DEFAULT_STORAGE_CLASS) == "true"


def _claim(namespace: str, name: str, class_name: str) -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(
        access_modes=("ReadWriteOnce",),
        resources=VolumeResources(requests={"storage": "1Gi"}),
        storage_class_name=class_name,
    )
    meta = ObjectMeta(name=name, namespace=namespace, uid=f"claim/{namespace}/{name}")
    return PersistentVolumeClaim(metadata=meta, spec=spec, status=ClaimStatus(phase="Pending"))


def _new_class(name: str, state: ClusterState) -> StorageClass:
    """A class of the provisioner that others have, which makes volumes where they are needed."""
    known = [c.provisioner for c in state.objects.all(StorageClass) if c.provisioner != NO_PROVISIONER]
    return StorageClass(
        metadata=ObjectMeta(name=name, uid=f"class/{name}"),
        provisioner=known[0] if known else ANY_PROVISIONER,
        volume_binding_mode="WaitForFirstConsumer",
    )


def _bound(claim: PersistentVolumeClaim) -> tuple[Edit, ...]:
    return _created(_volume_for(claim)), Edit(claim, _as_bound)


def _as_bound(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    annotations: dict[str, Any] = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=_volume_name(claim)),
        status=replace(claim.status, phase="Bound"),
    )


def _volume_for(claim: PersistentVolumeClaim) -> PersistentVolume:
    """A volume that every node can reach."""
    spec = claim.spec
    owner = ObjectReference(
        kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
    )
    return PersistentVolume(
        metadata=ObjectMeta(name=_volume_name(claim), uid=f"volume/{claim.key}"),
        spec=PersistentVolumeSpec(
            capacity=spec.resources.requests,
            access_modes=spec.access_modes,
            storage_class_name=class_of(claim),
            volume_mode=spec.volume_mode,
            claim_ref=owner,
        ),
        status=ClaimStatus(phase="Bound"),
    )


def _volume_name(claim: PersistentVolumeClaim) -> str:
    return f"for-{claim.namespace}-{claim.name}"

"""The oracle of random histories: whether a pod waits that a scheduler started afresh on the same state would bind.

Gaps of kube-scheduler to which recordings hold kubesched are named here, and left out by name.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.scheduler.group_world import GroupWorld
from tests.unit.scheduler.memory_cluster import Running
from tests.waiting_world import Doorkeeper, Way, world_of

from kubesched.api.pod import Pod
from kubesched.framework.decision import Decision
from kubesched.framework.extender import AnswersMissingError
from kubesched.plugins.default_preemption.fuse import EvictionFuse, party_of
from kubesched.scheduler.groups.group_queue import GroupQueue
from kubesched.scheduler.queue.queued_pod import QueuedPod


def could_run(world: GroupWorld, mixture: str, way: Way) -> list[str]:
    """Pods that wait though a scheduler that is started now binds them, or makes room for them, at once.

    Each is asked about by itself, with nominations as they are; pods of groups are tried, group by group. Pods that
    back off will be tried.
    """
    if all(pod.spec.node_name for pod in world.cluster.pods.values()):
        return []
    fresh = world_of(mixture, way)
    queue = world.queue
    gaps = (GAPS if way.batched else GAPS | PARITY_GAPS).values()
    left_out = {queued.key for queued in queue.unschedulable() if any(gap(queued) for gap in gaps)}
    left_out |= {queued.key for queued in (*queue.backoff(), *queue.error_backoff(), *queue.in_flight())}
    for obj in world.cluster.objects.values():
        fresh.cluster.put(obj)
    fresh.cluster.tell(fresh.scheduler)
    for pod in fresh.cluster.pods.values():
        # kube-scheduler v1.36 overlooks nominations of gated pods when it starts
        if pod.status.nominated_node_name and not pod.spec.node_name:
            fresh.queue.nominate(pod, None)
    waiting = [pod for pod in fresh.cluster.pods.values() if _is_waiting(pod, fresh) and pod.key not in left_out]
    alone = [pod for pod in waiting if pod.spec.scheduling_group is None]
    left = [pod.key for pod in alone if _can_run(pod, fresh, may_preempt=way.batched and _may_evict(pod, world))]
    left = left if way.batched else [key for key in left if not _is_behind_nominee(key, fresh)]
    if left or len(alone) == len(waiting):
        return left
    _keep_order(world, fresh)
    fresh.try_all(500)
    pods = fresh.cluster.pods
    return [p.key for p in waiting if p.spec.scheduling_group and p.key in pods and pods[p.key].spec.node_name]


def _is_waiting(pod: Pod, fresh: GroupWorld) -> bool:
    return not pod.spec.node_name and not pod.is_terminating and fresh.scheduler.engine.knows(pod.spec.scheduler_name)


def _is_behind_nominee(key: str, fresh: GroupWorld) -> bool:
    """Whether a node that was kept for another pod is free for this one, since that one found another node."""
    pods = fresh.cluster.pods
    bound = [(pod.spec.node_name, pod.status.nominated_node_name) for pod in pods.values() if pod.spec.node_name]
    return _decision(pods[key], fresh).node in {nominated for node, nominated in bound if nominated != node}


def _may_evict(pod: Pod, world: GroupWorld) -> bool:
    """Not one whose preemptions were in vain, since kube-scheduler lets others have the room that is kept for it."""
    fuse = world.scheduler.state.companion(EvictionFuse)
    return not fuse.is_blown(party_of(pod), [pod.identity], now=0.0)


def _can_run(pod: Pod, fresh: GroupWorld, *, may_preempt: bool) -> bool:
    if fresh.scheduler.engine.pre_enqueue(pod) is not None:
        return False
    decision = _decision(pod, fresh)
    makes_room = decision.post_filter is not None and bool(decision.post_filter.victims)
    return bool(decision.node) or (may_preempt and makes_room)


def _decision(pod: Pod, fresh: GroupWorld) -> Decision:
    engine = fresh.scheduler.engine
    answers = engine.answers_for(pod)
    while True:
        try:
            return engine.decide(pod, extender_answers=answers)
        except AnswersMissingError as missing:
            for question in missing.questions:
                Running(question.ask()).to_the_end()


def _keep_order(world: GroupWorld, fresh: GroupWorld) -> None:
    """Members of a group are tried in an order that attempts and times make: another order is no lost wake-up."""
    if isinstance(world.queue, GroupQueue) and isinstance(fresh.queue, GroupQueue):
        known = {m.key: m for group in world.queue._groups.values() for m in group.queued_pods}
        for group in fresh.queue._groups.values():
            for member in group.queued_pods:
                if member.key in known:
                    member.attempts, member.timestamp = known[member.key].attempts, known[member.key].timestamp


Gap = Callable[[QueuedPod], bool]
GAPS: dict[str, Gap] = {
    "Permit: a denied pod waits for what the plugin registered": lambda queued: Doorkeeper.name in queued.rejectors,
}
"""Where a pod may wait in both modes: nobody but the plugin knows what helps."""
PARITY_GAPS: dict[str, Gap] = {
    "InterPodAffinity: a node is added, and the pod has no affinity of its own": (
        lambda queued: queued.rejectors == {"InterPodAffinity"} and queued.pod.spec.affinity is None
    ),
    "DefaultPreemption: a victim changes while the preemptor is held back, and is no help when it leaves": (
        lambda queued: queued.gating_plugin == "DefaultPreemption"
    ),
}
"""Gaps of kube-scheduler v1.36, to which recordings hold PARITY mode. There are more, which `ClusterSteps` leave out:

- DefaultPreemption: what helps a plugin that rejects the pod only with its victims gone (`_can_run`)
- a pending pod with a nominated node, or one that is being bound, changes: it needs less, or has other labels
- a pending pod with a nominated node is bound to another one by another scheduler
- a pending pod with a nominated node finds another one (`_is_behind_nominee`)
- InterPodAffinity: a node leaves the domain of pods that avoid the waiting one
- InterPodAffinity: of several terms of anti-affinity, a pod goes that one of them means
- InterPodAffinity: a namespace has other labels
- DynamicResources, VolumeBinding: what was kept for the claims of a pod that is not bound after all
- VolumeBinding: a CSI driver is gone, or reports no capacity any more, and the pod has claims
- NodeVolumeLimits: a CSI driver of a node has no limit any more
- DynamicResources: a slice is gone
"""

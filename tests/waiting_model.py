"""Random histories of a cluster, and the question whether a pod waits that a scheduler started afresh would bind.

A history is a list of steps; a step is a verb with small numbers. A step that makes no sense at its moment does
nothing, so any part of a history is a history: what is found can be made smaller by leaving steps out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.group_world import ALL_GATES, GroupWorld, make_gang

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.config.features import DEFAULT_FEATURES
from kubesched.scheduler.groups.group_attempt import EntityAttempt
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

Step = tuple[Any, ...]

NODES, PODS, GROUPS = 4, 9, 2
FOREVER = 1e12
"""Seconds: no pod is tried again merely because it has waited for long."""

BASE = ("node", "node", "node gone", "pod", "pod", "pod", "pod gone", "try", "try", "decide", "finish", "wait")
MIXTURES: dict[str, tuple[str, ...]] = {
    "plain": BASE,
    "priorities": (*BASE, "priority", "priority"),
    "affinity": (*BASE, "affinity", "affinity", "relabel"),
    "spread": (*BASE, "spread", "spread", "relabel"),
    "nominations": (*BASE, "nominate", "nominate"),
    "resizes": (*BASE, "resize"),
    "other schedulers": (*BASE, "foreign", "foreign"),
    "devices": (*BASE, "slice", "slice", "device", "device", "claim gone"),
    "gates": (*BASE, "gated", "open"),
    "groups": (*BASE, "group", "group", "member", "member", "member", "group gone", "gated member", "open"),
    "all": (
        *BASE,
        *("priority", "affinity", "spread", "relabel", "nominate", "resize", "foreign"),
        *("slice", "device", "gated", "open"),
    ),
}


def random_history(seed: int, mixture: str, longest: int = 40) -> list[Step]:
    chance = random.Random(f"{mixture} {seed}")
    verbs = MIXTURES[mixture]
    return [
        (chance.choice(verbs), chance.randrange(1 << 16), chance.randrange(1 << 16), chance.randrange(1 << 16))
        for _ in range(chance.randrange(4, longest))
    ]


class Model:
    """A cluster to which a history happens, and the scheduler that follows it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.world = _world(settings)
        self._decided: list[EntityAttempt] = []
        self._steps: dict[str, Callable[[int, int, int], None]] = {
            "node": self._node,
            "node gone": self._node_gone,
            "pod": lambda i, a, b: self._pod(i, a, lambda pod: pod),
            "priority": lambda i, a, b: self._pod(i, a, lambda pod: pod.priority(b % 3 * 10)),
            "affinity": lambda i, a, b: self._pod(i, a, lambda pod: _affine(pod, b)),
            "spread": lambda i, a, b: self._pod(i, a, lambda pod: _spread(pod, b)),
            "device": self._device,
            "gated": lambda i, a, b: self._pod(i, a, lambda pod: pod.gate("example.com/later")),
            "open": self._open,
            "pod gone": self._pod_gone,
            "relabel": self._relabel,
            "nominate": self._nominate,
            "resize": self._resize,
            "foreign": self._foreign,
            "slice": self._slice,
            "claim gone": self._claim_gone,
            "group": self._group,
            "group gone": self._group_gone,
            "member": self._member,
            "gated member": lambda i, a, b: self._member(i, a, b, gate=True),
            "try": lambda i, a, b: self._try(1 + i % 3),
            "decide": lambda i, a, b: self._decide_one(),
            "finish": lambda i, a, b: self._finish(),
            "wait": lambda i, a, b: self.world.pass_seconds((0.5, 1, 3, 12)[i % 4]),
        }

    def run(self, history: Sequence[Step]) -> None:
        for verb, i, a, b in history:
            self._steps[verb](i, a, b)

    def settle(self) -> None:
        """Let time pass until nothing happens any more; nobody is woken by time alone."""
        while self._decided:
            self._finish()
        for _ in range(40):
            self._try(200)
            self.world.pass_seconds(1)

    def left_waiting(self) -> list[str]:
        """Pods that wait though a scheduler that is started now binds them, or makes room for them, at once.

        Each is asked about by itself, with nominations as they are; pods of groups are tried, group by group.
        """
        fresh = _world(self._settings)
        gaps = {queued.key for queued in self.world.queue.unschedulable() if _is_known_gap(queued)}
        for obj in self.world.cluster.objects.values():
            fresh.cluster.put(obj)
        fresh.cluster.tell(fresh.scheduler)
        for (
            pod
        ) in fresh.cluster.pods.values():  # kube-scheduler v1.36 overlooks nominations of gated pods when it starts
            if pod.status.nominated_node_name and not pod.spec.node_name:
                fresh.queue.nominate(pod, None)
        waiting = [pod for pod in fresh.cluster.pods.values() if not pod.spec.node_name and pod.key not in gaps]
        engine = fresh.scheduler.engine
        left = [
            pod.key
            for pod in waiting
            if pod.spec.scheduling_group is None
            and engine.knows(pod.spec.scheduler_name)
            and engine.pre_enqueue(pod) is None
            and ((decision := engine.decide(pod)).node or (decision.post_filter and decision.post_filter.victims))
        ]
        if left or not any(pod.spec.scheduling_group for pod in waiting):
            return left
        fresh.try_all(500)
        pods = fresh.cluster.pods
        return [p.key for p in waiting if p.spec.scheduling_group and p.key in pods and pods[p.key].spec.node_name]

    # -- steps --------------------------------------------------------------------------------------------------------

    def _see(self, *objects: PodBuilder | NodeBuilder | KubeObject) -> None:
        self.world.see(*objects)

    def _find(self, name: str) -> Pod | None:
        return self.world.cluster.pods.get(f"default/{name}")

    def _some_pod(self, i: int, *, bound: bool) -> Pod | None:
        pods = [pod for pod in self.world.cluster.pods.values() if bool(pod.spec.node_name) == bound]
        return pods[i % len(pods)] if pods else None

    def _node(self, i: int, a: int, b: int) -> None:
        node = make_node(f"n{i % NODES}").capacity(cpu=str((1, 2, 3)[a % 3]), pods=4).zone(f"z{i % 2}")
        if b % 8 == 0:
            node = node.cordoned()
        elif b % 8 == 1:
            node = node.taint("dedicated")
        elif b % 8 == 2:
            node = node.label(disk="ssd")
        self._see(node)

    def _node_gone(self, i: int, a: int, b: int) -> None:
        """A node goes, and then the pods on it, as the garbage collector of pods has it."""
        nodes = [obj for obj in self.world.cluster.objects.values() if isinstance(obj, Node)]
        if nodes:
            node = nodes[i % len(nodes)]
            self.world.lose(NodeBuilder(node))
            for pod in list(self.world.cluster.pods.values()):
                if pod.spec.node_name == node.name:
                    self.world.lose(PodBuilder(pod))

    def _pod(self, i: int, a: int, change: Callable[[PodBuilder], PodBuilder]) -> None:
        name = f"p{i % PODS}"
        if self._find(name) is None:
            pod = make_pod(name, uid=f"{name}-{self.world.cluster._version}")
            if a % 2:  # one of many equal ones
                pod = pod.label(app="a0").requests(cpu="1")
            else:
                pod = pod.label(app=f"a{a // 2 % 2}").requests(cpu=("500m", "1", "2")[a // 4 % 3])
            if a % 2 == 0 and a // 16 % 4 == 0:
                pod = pod.node_selector(disk="ssd")
            elif a % 2 == 0 and a // 16 % 4 == 1:
                pod = pod.toleration("dedicated", operator="Exists")
            self._see(change(pod))

    def _pod_gone(self, i: int, a: int, b: int) -> None:
        pods = list(self.world.cluster.pods.values())
        if pods:
            self.world.lose(PodBuilder(pods[i % len(pods)]))

    def _relabel(self, i: int, a: int, b: int) -> None:
        pod = self._some_pod(i, bound=bool(a % 2))
        if pod is not None:
            self._see(PodBuilder(pod).label(app=f"a{b % 3}"))

    def _nominate(self, i: int, a: int, b: int) -> None:
        pod = self._some_pod(i, bound=False)
        if pod is not None:
            self._see(PodBuilder(pod).nominated("" if b % 4 == 0 else f"n{a % NODES}"))

    def _resize(self, i: int, a: int, b: int) -> None:
        pod = self._some_pod(i, bound=bool(b % 4))
        if pod is not None:
            self._see(PodBuilder(pod).requests(cpu=("250m", "500m", "1")[a % 3]))

    def _foreign(self, i: int, a: int, b: int) -> None:
        if b % 3 == 0 and (pod := self._some_pod(i, bound=False)) is not None:
            self._see(PodBuilder(pod).on(f"n{a % NODES}"))
            return
        name = f"f{i % PODS}"
        if self._find(name) is None:
            pod_on = make_pod(name).spec(scheduler_name="other").requests(cpu="1").label(app=f"a{b % 2}")
            self._see(pod_on.on(f"n{a % NODES}"))

    def _slice(self, i: int, a: int, b: int) -> None:
        node = f"n{i % NODES}"
        self._see(make_class("gpu"), make_slice(node, *(device(f"d{k}", model=f"m{b % 2}") for k in range(a % 3))))

    def _device(self, i: int, a: int, b: int) -> None:
        name = f"p{i % PODS}"
        if self._find(name) is None:
            claim = f"c{b % 4}" if a % 3 == 0 else f"of-{name}"
            if f"ResourceClaim default/{claim}" not in self.world.cluster.objects:
                self._see(make_claim(claim))
            self._pod(i, a, lambda pod: with_claims(pod, claim))

    def _claim_gone(self, i: int, a: int, b: int) -> None:
        claims = [obj for obj in self.world.cluster.objects.values() if isinstance(obj, ResourceClaim)]
        if claims:
            self.world.cluster.remove(claims[i % len(claims)])
            self.world.cluster.tell(self.world.scheduler)

    def _open(self, i: int, a: int, b: int) -> None:
        gated = [pod for pod in self.world.cluster.pods.values() if pod.spec.scheduling_gates]
        if gated:
            self._see(PodBuilder(gated[i % len(gated)]).spec(scheduling_gates=()))

    def _group(self, i: int, a: int, b: int) -> None:
        name = f"g{i % GROUPS}"
        if not any(isinstance(o, PodGroup) and o.name == name for o in self.world.cluster.objects.values()):
            self._see(make_gang(name, (None, 1, 2, 3)[a % 4], uid=f"{name}-{self.world.cluster._version}"))

    def _group_gone(self, i: int, a: int, b: int) -> None:
        groups = [obj for obj in self.world.cluster.objects.values() if isinstance(obj, PodGroup)]
        if groups:
            self.world.cluster.remove(groups[i % len(groups)])
            self.world.cluster.tell(self.world.scheduler)

    def _member(self, i: int, a: int, b: int, *, gate: bool = False) -> None:
        group = f"g{a % GROUPS}"
        change = (lambda pod: pod.group(group).gate("example.com/later")) if gate else (lambda pod: pod.group(group))
        self._pod(i, b, change)

    def _try(self, most: int) -> None:
        for _ in range(most):
            if not self._decide():
                return
            self._finish(-1)

    def _decide_one(self) -> None:
        self._decide()

    def _decide(self) -> bool:
        attempt = self.world.scheduler.pop()
        if attempt is None:
            return False
        self.world.scheduler.decide(attempt)
        self._decided.append(attempt)
        return True

    def _finish(self, which: int = 0) -> None:
        if self._decided:
            attempt = self._decided.pop(which)
            self.world.finish_all(attempt)


def left_waiting(history: Sequence[Step], **settings: Any) -> list[str]:
    model = Model(settings)
    model.run(history)
    model.settle()
    return model.left_waiting()


def smaller(history: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """The history without the steps that do not matter."""
    steps, size = list(history), max(1, len(history) // 2)
    while size:
        start = 0
        while start < len(steps):
            shorter = steps[:start] + steps[start + size :]
            if fails(shorter):
                steps = shorter
            else:
                start += size
        size //= 2
    return steps


def _is_known_gap(queued: QueuedPod) -> bool:
    """What kube-scheduler v1.36 overlooks, and recordings hold kubesched to.

    Its InterPodAffinity does not wake a pod without affinity of its own, rejected by the anti-affinity of placed pods,
    when a node is added.
    """
    return queued.rejectors == {"InterPodAffinity"} and queued.pod.spec.affinity is None


def _affine(pod: PodBuilder, b: int) -> PodBuilder:
    topology, app = (HOSTNAME, ZONE)[b % 2], f"a{b // 2 % 2}"
    return pod.pod_affinity(topology, app=app) if b // 4 % 3 == 0 else pod.pod_anti_affinity(topology, app=app)


def _spread(pod: PodBuilder, b: int) -> PodBuilder:
    return pod.spread((HOSTNAME, ZONE)[b % 2], app=f"a{b // 2 % 2}")


def _world(settings: dict[str, Any]) -> GroupWorld:
    groups = settings.get("groups", False)
    others = {name: value for name, value in settings.items() if name != "groups"}
    features = ALL_GATES if groups else DEFAULT_FEATURES
    return GroupWorld(features=features, longest_wait=FOREVER, **others)

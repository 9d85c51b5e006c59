"""A world with pod groups: all their gates are on, and an attempt is one at a whole group."""

from __future__ import annotations

from typing import Any

from tests.unit.scheduler.memory_cluster import Running
from tests.unit.scheduler.world import World

from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod_groups import (
    GangPolicy,
    PodGroup,
    PodGroupCondition,
    PodGroupSpec,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
)
from kubesched.config.features import Features
from kubesched.scheduler.attempt.attempt import Asking, Attempt, Done, Paused, WaitingOnPermit
from kubesched.scheduler.groups.group_attempt import EntityAttempt, GroupAttempt
from kubesched.scheduler.groups.group_queue import GroupQueue
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

BETA, ALPHA = "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"
ALL_GATES = Features(pod_groups=True, gang_scheduling=True, group_preemption=True, group_topology=True)


class GroupWorld(World):
    """Every attempt is carried out to its end, and the watch tells of it, unless said otherwise."""

    def __init__(
        self, *objects: PodBuilder | NodeBuilder | KubeObject, features: Features = ALL_GATES, **settings: Any
    ) -> None:
        super().__init__(*objects, features=features, **settings)

    @property
    def groups(self) -> GroupQueue:
        assert isinstance(self.queue, GroupQueue)
        return self.queue

    def taken_over(self) -> GroupWorld:
        """A scheduler that has just become the leader: it knows what the API server has, and nothing else."""
        successor = GroupWorld()
        successor.now = self.now
        for obj in self.cluster.objects.values():
            successor.cluster.put(obj)
        successor.cluster.tell(successor.scheduler)
        return successor

    def try_all(self, most: int = 100) -> list[Attempt]:
        """Until nobody is to be tried now."""
        attempts: list[Attempt] = []
        for _ in range(most):
            attempt = self.scheduler.pop()
            if attempt is None:
                return attempts
            self.scheduler.decide(attempt)
            while isinstance(attempt.state, Asking | Paused):
                self.answer(attempt)
                self.scheduler.decide(attempt)
            attempts += attempt.attempts
            self.finish_all(attempt)
        raise AssertionError("it does not come to rest")

    def decided_group(self) -> GroupAttempt:
        attempt = self.scheduler.pop()
        assert isinstance(attempt, GroupAttempt), "no group to try"
        self.scheduler.decide(attempt)
        return attempt

    def answer(self, attempt: EntityAttempt) -> int:
        """Have all questions of an attempt answered: how many there were."""
        questions = attempt.state.questions if isinstance(attempt.state, Asking) else ()
        for question in questions:
            Running(question.ask()).to_the_end()
        return len(questions)

    def finish_all(self, attempt: EntityAttempt) -> None:
        """All pods of an attempt at a group, and the group."""
        for each in attempt.attempts:
            if not isinstance(each.state, Done | WaitingOnPermit):
                Running(self.scheduler.finish(each)).to_the_end()
        if isinstance(attempt, GroupAttempt):
            Running(self.scheduler.finish(attempt)).to_the_end()
        self.cluster.tell(self.scheduler)

    def bound(self, prefix: str = "") -> list[str]:
        return sorted(p.name for p in self.cluster.pods.values() if p.spec.node_name and p.name.startswith(prefix))

    def pending(self, prefix: str = "") -> list[str]:
        return sorted(p.name for p in self.cluster.pods.values() if not p.spec.node_name and p.name.startswith(prefix))

    def message(self, name: str) -> str:
        """What the pod's condition says."""
        return next((c.message for c in self.cluster.pod(name).status.conditions if c.type == "PodScheduled"), "")

    def condition(self, name: str) -> PodGroupCondition | None:
        group = next(g for g in self.cluster.objects.values() if isinstance(g, PodGroup) and g.name == name)
        return group.status.conditions[0] if group.status.conditions else None


def make_gang(
    name: str,
    min_count: int | None,
    *,
    api: str = BETA,
    topology: str = "",
    priority: int | None = None,
    uid: str = "",
    **spec: Any,
) -> PodGroup:
    """A gang; without a count, a group of the basic policy."""
    policy = SchedulingPolicy(gang=None if min_count is None else GangPolicy(min_count=min_count))
    constraints = SchedulingConstraints(topology=(TopologyConstraint(key=topology),)) if topology else None
    return PodGroup(
        api_version=api,
        metadata=ObjectMeta(name=name, namespace="default", uid=uid or f"uid-of-group-{name}", generation=1),
        spec=PodGroupSpec(scheduling_policy=policy, scheduling_constraints=constraints, priority=priority, **spec),
    )


def members(group: str, count: int, *, first: int = 0, cpu: str = "1") -> list[PodBuilder]:
    return [make_pod(f"{group}-{i}").group(group).requests(cpu=cpu) for i in range(first, first + count)]


def nodes(count: int, *, cpu: str = "1") -> list[NodeBuilder]:
    return [make_node(f"n{i}").capacity(cpu=cpu) for i in range(count)]

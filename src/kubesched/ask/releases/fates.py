"""What becomes of each pod under one release, decided alone: pending pods, and placed ones as if they had no node."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.ask.output import listed
from kubesched.ask.trial import Trial
from kubesched.config import SchedulerConfiguration
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.registry import Registry
from kubesched.simulate.cluster import ClusterModel, waits
from kubesched.simulate.nodes import leaves
from kubesched.simulate.placement import chosen_eviction, decide_on

MOST_NODES = 10
"""How many of several equally good nodes are named."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Fate:
    """What a release makes of a pod."""

    outcome: str
    nodes: tuple[str, ...] = ()
    """The best nodes: the pod goes to one of them, whichever is drawn."""
    ties: int = 0
    """How many those are, if not all are named."""
    message: str = ""
    evicting_on: str = ""
    """Where preemption would make room."""
    victims: tuple[str, ...] = ()

    def telling(self, other: Fate) -> Fate:
        """With some of the nodes only, first those that are not among the others."""
        nodes = sorted(self.nodes, key=lambda node: (node in other.nodes, node))
        return dataclasses.replace(self, nodes=tuple(nodes[:MOST_NODES]))

    @property
    def words(self) -> str:
        if self.nodes:
            more = self.ties - min(self.ties, _SHOWN)
            return " or ".join(self.nodes[:_SHOWN]) + (f" or {more} more" if more else "")
        text = self.message or self.outcome
        evicts = f"Evicts {listed(self.victims, _SHOWN)} on {self.evicting_on}." if self.evicting_on else ""
        return f"{text.removesuffix('.')}. {evicts}" if evicts else text


@dataclass(frozen=True, slots=True)
class PodClass:
    """Pods that a release treats alike, each for itself: equal pods that wait, or that stand on the same node."""

    pods: tuple[str, ...]
    """The first of them is decided upon."""
    is_placed: bool


class ReleaseModel:
    """A cluster under one release. Every node is looked at, so that nothing depends on where a search begins."""

    def __init__(
        self, objects: Iterable[KubeObject], settings: SchedulerConfiguration, plugins: Registry | None
    ) -> None:
        profiles = tuple(replace(profile, percentage_of_nodes_to_score=None) for profile in settings.profiles)
        settings = replace(settings, percentage_of_nodes_to_score=0, profiles=profiles)
        self.cluster = ClusterModel.with_missing_pods(objects, settings, plugins=plugins)

    def fate_of(self, pods: PodClass) -> Fate:
        """What becomes of the first pod of a class."""
        pod = self.cluster.pods[pods.pods[0]]
        if not pods.is_placed:
            return self._fate(decide_on(self.cluster, pod))
        with Trial(self.cluster) as trial:
            # A placed pod has no condition with the message, so a message that differs changes nothing.
            return dataclasses.replace(self._fate(decide_on(self.cluster, trial.take_off(pod))), message="")

    def _fate(self, decision: Decision) -> Fate:
        state, scores = self.cluster.state, decision.trace.scores
        if decision.outcome is Outcome.SCHEDULED:
            rows = scores.best().rows(scores.nodes) if scores is not None else []
            nodes = tuple(state.nodes.names[row] for row in rows) or (decision.node,)
            return Fate(decision.outcome.value, nodes, len(nodes))
        eviction = chosen_eviction(decision, state)
        victims = tuple(sorted(victim.pod for victim in eviction.victims)) if eviction is not None else ()
        where = eviction.node if eviction is not None else ""
        return Fate(decision.outcome.value, (), 0, decision.message, where, victims)

    def classes(self) -> tuple[PodClass, ...]:
        """All pods that this scheduler would decide upon. Daemons, which have their node for life, are left out."""
        # Equal pods come one after another: that is faster.
        keys_by_class: dict[tuple[bytes, bool], dict[str, list[str]]] = {}
        for pod in self.cluster.pods.values():
            is_placed = self.cluster.state.placed(pod) is not None
            is_open = leaves(pod) if is_placed else waits(pod) and not pod.is_terminating
            if is_open and self.cluster.engine.knows(pod.spec.scheduler_name):
                alike = keys_by_class.setdefault((self.cluster.state.facts(pod).fingerprint, is_placed), {})
                node_name = pod.spec.node_name or pod.status.nominated_node_name
                alike.setdefault(pod.key if _has_own_claims(pod) else node_name, []).append(pod.key)
        return tuple(PodClass(tuple(pods), key[1]) for key, alike in keys_by_class.items() for pods in alike.values())


def _has_own_claims(pod: Pod) -> bool:
    """Whether claims were made for it alone: equal pods hold different devices and volumes then."""
    return bool(pod.spec.resource_claims) or any(volume.ephemeral for volume in pod.spec.volumes)

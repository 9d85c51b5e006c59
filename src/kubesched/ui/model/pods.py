"""One pod for the page, and lists of pods: of a node, of a search; always a page of them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.ui.model.asking import Asking, manifest_of, one_more, yaml_of
from kubesched.ui.model.entries import DecisionEntry
from kubesched.ui.model.headroom import workload_of
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.pending import PendingModel, WaitingPod
from kubesched.ui.model.verdict import Verdict

_FOUND = 12


@dataclass(frozen=True, slots=True)
class PodView:
    """Everything about one pod."""

    pod: str
    workload: str
    priority: int
    scheduler: str
    phase: str
    node: str
    """Where it is; empty if it waits."""
    nominated_node: str
    labels: dict[str, str]
    manifest: dict[str, object]
    """What can be edited of it."""
    yaml: str
    waiting: WaitingPod | None
    cause: str
    wakes: tuple[str, ...]
    history: tuple[DecisionEntry, ...]
    now: float
    """By the clock of the history."""
    verdict: Verdict | None
    """What would become of it now; of a pod that has a node, of one more like it. None if another scheduler decides."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    nodes: tuple[str, ...]
    pods: tuple[tuple[str, str], ...]
    """Names, and the nodes they are on."""
    more_nodes: int
    more_pods: int


class PodModel:
    """Looks pods up."""

    def __init__(self, observed: ObservedCluster, asking: Asking, pending: PendingModel) -> None:
        self._observed = observed
        self._asking = asking
        self._pending = pending

    def view(self, key: str) -> PodView | None:
        """None if there is no such pod."""
        observed = self._observed
        pod = observed.pods.get(key)
        if pod is None:
            return None
        placed = observed.state.placed(pod)
        node = placed.pod.spec.node_name if placed is not None else pod.spec.node_name
        waiting = self._pending.find(key) if not node else None
        cause = self._pending.cause_of(waiting) if waiting is not None else None
        manifest = manifest_of(pod)
        return PodView(
            pod=pod.key,
            workload=workload_of(pod),
            priority=pod.priority,
            scheduler=pod.spec.scheduler_name,
            phase=pod.status.phase or ("Running" if node else "Pending"),
            node=node,
            nominated_node=observed.state.nominated.node_of(pod),
            labels=pod.metadata.labels,
            manifest=manifest,
            yaml=yaml_of(manifest),
            waiting=self._pending.line(waiting) if waiting is not None else None,
            cause=cause.title if cause is not None else "",
            wakes=self._pending.wakes(cause.plugins, pod.spec.scheduler_name) if cause is not None else (),
            history=tuple(observed.log.of(key)) if observed.log is not None else (),
            now=observed.clock(),
            verdict=self._asking.verdict(one_more(placed.pod if placed is not None else pod)),
        )

    def try_it(self, text: str, key: str) -> Verdict | None:
        """What would become of the pod if it were like this. TryError if it cannot be."""
        original = self._observed.pods.get(key)
        return self._asking.verdict(self._asking.edited(text, original))

    def search(self, text: str) -> Found:
        """Nodes and pods with the text in their names; those whose names begin with it first."""
        wanted = text.strip().lower()
        if not wanted:
            return Found((), (), 0, 0)
        table = self._observed.state.nodes
        nodes = [name for name, row in table.row_of.items() if wanted in name.lower() and table.live[row]]
        pods = [pod for key, pod in self._observed.pods.items() if wanted in key.lower()]
        best_nodes = heapq.nsmallest(_FOUND, nodes, key=lambda name: _rank(name, wanted))
        best_pods = heapq.nsmallest(_FOUND, pods, key=lambda pod: _rank(pod.name, wanted))
        return Found(
            tuple(best_nodes),
            tuple((pod.key, self._node_of(pod)) for pod in best_pods),
            len(nodes) - len(best_nodes),
            len(pods) - len(best_pods),
        )

    def _node_of(self, pod: Pod) -> str:
        placed = self._observed.state.placed(pod)
        return placed.pod.spec.node_name if placed is not None else pod.spec.node_name


def _rank(name: str, wanted: str) -> tuple[bool, int, str]:
    return not name.lower().startswith(wanted), len(name), name

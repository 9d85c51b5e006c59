"""Tries pods and changes on a cluster: the engine decides on the cluster's own state, and then all is undone.

There is no copy of the cluster. A trial undoes its steps, last first, and restores orders that decisions depend on:
pods of a node, objects of a kind, nodes of a zone. Nothing else may change the cluster while a trial lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import group_key
from kubesched.framework.decision import Decision, Outcome
from kubesched.simulate.claims import claims_made_for, claims_of
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import PodPlacement, UnplacedPod, by_outcome, decide_on, place_one, reserve


class Trial:
    """A cluster as it would be, for as long as the `with` block lasts."""

    def __init__(self, cluster: ClusterModel) -> None:
        self.cluster = cluster
        self._state = cluster.state
        self._undo = ExitStack()
        self._order_is_kept = False
        self._pods_are_kept = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    @contextmanager
    def part(self) -> Iterator[Callable[[], None]]:
        """A trial within the trial: undone at the end of the block, unless the block calls the function it gets."""
        before, flags = self._undo, (self._order_is_kept, self._pods_are_kept)
        self._undo, is_kept = ExitStack(), []
        try:
            yield lambda: is_kept.append(True)
        finally:
            done, self._undo = self._undo, before
            if is_kept:
                before.push(done)
            else:
                done.close()
                self._order_is_kept, self._pods_are_kept = flags

    # -- what is asked ------------------------------------------------------------------------------------------------

    def place(self, pod: Pod) -> PodPlacement | UnplacedPod:
        """Where the pod would go; it stands there for those that are placed after it.

        It gets its claims first, as from their controller. If it has a node, it leaves that node for good.
        """
        if self._state.placed(pod) is not None:
            pod = self.take_off(pod)
        return place_one(self.cluster, self.with_claims(pod), self._schedule)

    def with_claims(self, pod: Pod) -> Pod:
        """The pod as it is once the claims of its templates have been made."""
        pod, claims = claims_made_for(pod, self.cluster.templates)
        for claim in claims:
            self.change(Change(None, claim))
        return pod

    def _schedule(self, pod: Pod) -> Decision:
        decision = decide_on(self.cluster, pod)
        if decision.outcome is Outcome.SCHEDULED:
            self.reserve(decision)
        return decision

    def reserve(self, decision: Decision) -> bool:
        """Whether all plugins can set aside what the pod needs on its node; if so, it stands there."""
        self._keep_nomination(decision.pod)
        with ExitStack() as undo:
            if not reserve(self.cluster, decision, undo):
                return False
            self._undo.enter_context(undo.pop_all())
        return True

    def take_off(self, pod: Pod) -> Pod:
        """Remove the pod from its node, with its claims deallocated. Returns the pod as pending."""
        self.keep(pod)
        return self.cluster.take_off_node(pod)

    def keep(self, pod: Pod) -> None:
        """Restore the pod and its claims at the end of the trial, whatever happens to them until then."""
        extended, others = claims_of(pod, self._state)
        for claim in others if extended is None else (extended, *others):
            self._keep_objects(claim)
        self._keep_nomination(pod)
        self._keep_row(pod)

    # -- what is changed ----------------------------------------------------------------------------------------------

    def change(self, change: Change[KubeObject]) -> None:
        """Apply a change; `old` must be the object as the cluster has it."""
        obj = change.obj
        match obj:
            case Node():
                if change.old is None or change.new is None or change.old.metadata.labels != change.new.metadata.labels:
                    self._keep_order()
                self._undo.callback(self.cluster.handle, Change(change.new, change.old))
            case Pod():
                self._keep_pods()
                self._keep_group(obj)
                self._keep_nomination(obj)
                self._keep_row(obj)
            case _:
                self._keep_objects(obj)
        self.cluster.handle(change)

    # -- what is put back ---------------------------------------------------------------------------------------------

    def _keep_order(self) -> None:
        """The order of nodes within their zones."""
        if not self._order_is_kept:
            self._order_is_kept = True
            table, order = self._state.nodes, self._state.nodes.order
            self._undo.callback(setattr, table, "order", order)
            table.order = order.for_a_while()

    def _keep_pods(self) -> None:
        """All pods by name, in their order."""
        if not self._pods_are_kept:
            self._pods_are_kept = True
            cluster, pods = self.cluster, self.cluster.pods
            self._undo.callback(setattr, cluster, "pods", pods)
            cluster.pods = dict(pods)

    def _keep_row(self, pod: Pod) -> None:
        """The pod on its node, in its place there; or that it is on none."""
        placed = self._state.placed(pod)
        if placed is None:
            self._undo.callback(self._state.delete, pod)
            return
        state, row, assumed, before = self._state, placed.row, placed.assumed, placed.pod
        identities = [other.pod.identity for other in state.pods.pods_on(row)]

        def put_back() -> None:
            state.delete(before)
            state.apply(before)
            again = state.placed(before)
            assert again is not None
            assert again.row == row
            again.assumed = assumed
            state.pods.arrange(row, identities)

        self._undo.callback(put_back)

    def _keep_group(self, pod: Pod) -> None:
        """The pending pods of its group, in their order."""
        groups, key = self._state.groups, group_key(pod)
        if not key:
            return
        before = list(groups.pending(key))

        def put_back() -> None:
            for member in list(groups.pending(key)):
                groups.gone(member)
            for member in before:
                groups.seen(member)

        self._undo.callback(put_back)

    def _keep_nomination(self, pod: Pod) -> None:
        """The pod's place among those that are nominated to its node; or that it is nominated to none."""
        nominated = self._state.nominated
        nomination = nominated.find(pod.identity)
        if nomination is None:
            self._undo.callback(nominated.remove, pod)
            return
        nominated_pod, node_name = nomination
        identities = [other.identity for other in nominated.on_node(node_name)]

        def put_back() -> None:
            nominated.add(nominated_pod, node_name)
            nominated.arrange(node_name, identities)

        self._undo.callback(put_back)

    def _keep_objects(self, obj: KubeObject) -> None:
        """An object in its place among those of its kind; or that there is none."""
        state, kind = self._state, type(obj)
        before = state.objects.get(kind, obj.name, obj.namespace)
        if before is None:
            self._undo.callback(self.cluster.handle, Change(obj, None))
            return
        keys = [other.key for other in state.objects.all(kind)]

        def put_back() -> None:
            is_in_place = state.objects.get(kind, obj.name, obj.namespace) is not None
            self.cluster.handle(Change(None, before))
            if not is_in_place:
                state.objects.arrange(kind, keys)

        self._undo.callback(put_back)


@contextmanager
def changed(cluster: ClusterModel, changes: Iterable[Change[KubeObject]]) -> Iterator[Trial]:
    """A trial on the cluster with these changes, for as long as the context lasts."""
    with Trial(cluster) as trial:
        for change in changes:
            trial.change(change)
        yield trial


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """Whether pods would find nodes, and which."""

    fits: bool
    """Whether all of them would."""
    nodes: int
    """How many nodes there are, with the changes that were supposed."""
    placed: tuple[PodPlacement, ...]
    unplaced: tuple[UnplacedPod, ...]


def fit(trial: Trial, pods: Iterable[Pod]) -> FitAnswer:
    """Place the pods in this order on the cluster of a trial."""
    placed, unplaced = by_outcome(trial.place(pod) for pod in pods)
    return FitAnswer(not unplaced, trial.cluster.state.nodes.live_count, placed, unplaced)

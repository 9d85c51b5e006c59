"""The extension points: a base class each. A plugin inherits those it needs; the framework sees which.

A filter or a score may be written for one node at a time (`filter_node`, `score_node`) or for columns (`filter`,
`score`). Of one that is written both ways the framework takes the faster: a column at first, then the one node that the
last pod went to. Names and meaning of the points are those of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from operator import index
from typing import Any, ClassVar, Protocol

import numpy as np

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.framework.client import ClusterClient, Handle
from kubesched.framework.copies import CopyRoom
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import Diagnosis, FilterOutcome, Rejections
from kubesched.framework.events import Interest
from kubesched.framework.nodes import Nodes, NodeView, WhatIf
from kubesched.framework.reads import NARROW, UNDECLARED, Reads, Scope
from kubesched.framework.status import Status
from kubesched.framework.waiting import WaitingPods
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64
from kubesched.state.pods import PlacedPod


@dataclass(frozen=True)
class PluginContext:
    """What a plugin is given when it is made."""

    features: Features = DEFAULT_FEATURES
    """Which features are on."""
    waiting: WaitingPods = field(default_factory=WaitingPods)
    """Pods that wait for a Permit plugin, to be allowed or rejected."""
    now: Callable[[], float] = lambda: 0.0
    """The time of day, in seconds since 1970: for what objects say about times."""
    client: ClusterClient = field(default_factory=ClusterClient)
    """Reads and writes the cluster's objects, and waits until controllers have acted on them."""
    handle: Handle = field(default_factory=Handle)
    """The scheduler that the plugin runs in."""


class Plugin:
    """The base of all plugins. `args` is the plugin's entry in pluginConfig, if there is one."""

    name: ClassVar[str] = ""
    absent_from: Collection[str] = ()
    """Extension points at which the plugin does not take part in this release, though it has the methods."""

    def __init__(self, args: Any = None, context: PluginContext | None = None) -> None:
        self.args = args
        self.context = context or PluginContext()
        self.signs = type(self).sign is not Plugin.sign

    def sign(self, cycle: Cycle) -> Hashable:
        """What `filter` and `score` read besides the node, as far as it counts: equal signatures, equal answers.

        Optional: without it the signature is all that the plugin declares to read of the pod. A plugin whose scope is
        OBJECTS or CLUSTER is asked each time unless it signs, also for what it found out about the cluster.
        None if the pod cannot be signed: then the plugin is asked each time. That must follow from the pod alone.
        """
        return None

    def events_to_register(self) -> Sequence[Interest] | None:
        """The events that may help pods which this plugin rejected; None if any event may."""
        return None


class QueueSortPlugin(Plugin):
    """Orders pending pods. Exactly one is enabled, the same in all profiles."""

    def sort_key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Pods with smaller keys go first."""
        raise NotImplementedError


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may be looked at at all."""

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        raise NotImplementedError

    def pods_to_recheck(self, change: Change[Any]) -> Collection[str] | None:
        """The pods (`namespace/name`) held back by this plugin that may pass after a change; None if any may."""
        return None


class PreFilterPlugin(Plugin):
    """Looks at the pod once before any node is."""

    pre_filter_reads: ClassVar[Reads] = UNDECLARED
    is_silent: ClassVar[bool] = False
    """Whether pre_filter has nothing to say of any pod: then it is listed, but not asked."""
    adjusts: ClassVar[bool] = False
    """Whether what pre_filter wrote down depends on placed pods, so that `add_pod` and `remove_pod` must adjust it."""

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        """None to go on, SKIP to be left out, the names of the only nodes worth a look, or a rejection of them all."""
        raise NotImplementedError

    def add_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        """What if this pod were on that row too?"""

    def remove_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        """What if this pod were not on that row?  Must undo add_pod exactly, and the other way round."""


class FilterPlugin(Plugin):
    """Says which nodes cannot take the pod."""

    filter_reads: ClassVar[Reads] = UNDECLARED

    def __init__(self, args: Any = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self.rejections = Rejections(self.name)
        self.is_columnar = type(self).filter is not FilterPlugin.filter
        """Whether the plugin answers for columns; then it is asked about all rows, also dead ones."""
        self.answers_both_ways = self.is_columnar and type(self).filter_node is not FilterPlugin.filter_node
        scope = self.filter_reads.cluster
        self.is_cached = self.is_columnar and (scope in NARROW or self.signs)
        """Whether its answers are kept, and repaired where nodes change."""
        self.looks_at_totals = self.is_columnar and scope is Scope.NODE_TOTALS
        """Whether it can be asked about many rows with pods imagined there."""
        self.looks_at_pods = not self.looks_at_totals and scope not in (Scope.NODE_OBJECT, Scope.OBJECTS)
        """Whether it looks at pods one by one: then it is asked which of them matter (`depends_on_pod`)."""

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        """A rejection id per row: 0 where the pod can run, else as `reject` or `rejections.id_of` give it."""
        return np.fromiter(
            (self.rejections.id_of(self.filter_node(cycle, nodes.view(i))) for i in range(len(nodes))),
            dtype=np.int32,
            count=len(nodes),
        )

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        """None if the pod can run on this node, else a rejection."""
        raise NotImplementedError("it has neither filter nor filter_node")

    def capacity(self, cycle: Cycle, nodes: Nodes) -> Int64 | None:
        """How many pods like this one each row could take, one after another; None if a count per row cannot tell.

        Not asked of filters that look only at node objects: where they pass, it is any number.
        """
        return None

    def copies(self, cycle: Cycle, nodes: Nodes) -> CopyRoom | None:
        """The same, with limits where copies keep each other away from whole domains of a topology."""
        room = self.capacity(cycle, nodes)
        return None if room is None else CopyRoom(room)

    def depends_on_pod(self, cycle: Cycle, pod: PlacedPod) -> bool:
        """Whether the answer about a node may depend on such a pod being there, or not being there.

        Asked of filters of the scopes NODE and CLUSTER, once for all equivalent pods. Nodes without such pods are
        answered for all at once.
        """
        return True

    def depends_on_pods(self, cycle: Cycle) -> bool:
        """Whether there may be such pods at all: if not, `depends_on_pod` is not asked."""
        return True

    def reject(self, where: Bool, status: Status) -> Int32:
        """Rejection ids: of `status` where `where` is set, 0 elsewhere."""
        return where.astype(np.int32) * np.int32(self.rejections.id_of(status))


class Preemption(Protocol):
    """Room to be made for a pod. A scheduler carries it out; an explanation does not."""

    def refusal(self) -> str:
        """Why no victims should be evicted for the pod after all; empty if they may be."""

    def hold_back(self) -> None:
        """Keep the pod, which is about to go back to the queue, from being tried until `carry_out` has ended."""

    async def carry_out(self) -> Status | None:
        """Evict the victims, and hold the pod back no longer. None, or what broke."""


@dataclass(frozen=True)
class PostFilterResult:
    """What a PostFilter plugin found: a node to nominate and the pods that must go first.

    `nominated` None leaves an earlier nomination alone; an empty name clears it.
    """

    nominated: str | None = None
    victims: tuple[PlacedPod, ...] = ()
    details: Any = None
    preemption: Preemption | None = None
    """How the victims are evicted."""
    said: str = ""
    """What it adds to the message of the pod."""
    rejectors: frozenset[str] = frozenset()
    """The plugins that reject the pod even without pods of lower priority: events that help them may help the pod."""


class WhatIfRunner(Protocol):
    """The filters of a profile on nodes as they would be if pods came or went, for plugins that make room."""

    filters: tuple[FilterPlugin, ...]

    def add_pod(self, cycle: Cycle, world: WhatIf, pod: PlacedPod) -> None:
        """Put a pod onto the single row of a view, also in what pre-filters wrote down about placed pods."""

    def remove_pod(self, cycle: Cycle, world: WhatIf, pod: PlacedPod) -> None:
        """The opposite of `add_pod`."""

    def check(self, cycle: Cycle, world: WhatIf) -> Status | None:
        """The first rejection of the single row of a view."""

    def check_with_nominated(self, cycle: Cycle, world: WhatIf) -> Status | None:
        """The first rejection of it, both with and without the pods nominated there that go before this one."""


class PostFilterPlugin(Plugin):
    """Called when no node fits: may make room."""

    post_filter_reads: ClassVar[Reads] = UNDECLARED

    def post_filter(
        self, cycle: Cycle, diagnosis: Diagnosis, what_if: WhatIfRunner
    ) -> tuple[PostFilterResult | None, Status | None]:
        """A result and None on success; Unschedulable lets the next plugin try."""
        raise NotImplementedError


class PreScorePlugin(Plugin):
    """Looks at the nodes that fit, once, before they are scored."""

    pre_score_reads: ClassVar[Reads] = UNDECLARED

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        """None to go on, SKIP to be left out of scoring."""
        return None


class ScorePlugin(Plugin):
    """Says how good each node is that fits."""

    score_reads: ClassVar[Reads] = UNDECLARED

    def __init__(self, args: Any = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self.scores_columns = type(self).score is not ScorePlugin.score
        self.scores_both_ways = self.scores_columns and type(self).score_node is not ScorePlugin.score_node
        self.normalizes = type(self).normalize is not ScorePlugin.normalize
        self.has_cached_scores = self.scores_columns and (self.score_reads.cluster in NARROW or self.signs)
        """Whether its scores, before normalisation, are kept and repaired where nodes change."""

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        """A score per row; a plain number if it is the same for all."""
        scores = (_checked_score(self.score_node(cycle, nodes.view(i))) for i in range(len(nodes)))
        return np.fromiter(scores, dtype=np.int64, count=len(nodes))

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        """How good this node is, from 0 to 100 unless `normalize` brings it there."""
        raise NotImplementedError("it has neither score nor score_node")

    def normalize(self, cycle: Cycle, scores: Any, nodes: Nodes) -> Int64 | Int32 | int:
        """Bring the scores of the nodes that fit into 0..100."""
        unchanged: Int64 | Int32 | int = scores
        return unchanged


def _checked_score(score: int) -> int:
    """The score; TypeError if it is no whole number, which NumPy would convert silently."""
    try:
        return index(score)
    except TypeError:
        raise TypeError(f"a score must be a whole number, not {score!r}") from None


class ReservePlugin(Plugin):
    """Sets resources aside for a pod on its node; `unreserve` must undo it whatever happened.

    No plugin may wait here: it leaves writes that undo it to `Cycle.defer`.
    """

    def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        raise NotImplementedError

    def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        raise NotImplementedError


class PermitPlugin(Plugin):
    """Last word before binding: approve, deny, or wait."""

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """None approves; a Wait status waits at most that many seconds; anything else denies."""
        raise NotImplementedError


class PreBindPlugin(Plugin):
    """Work that must be done before the pod is bound. May be `async def`."""

    def pre_bind_pre_flight(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        """SKIP if there is nothing to do for this pod: then `pre_bind` is not called.

        None if there is.
        """
        return None

    def takes_long(self, cycle: Cycle, pod: Pod, node_name: str) -> bool:
        """Whether `pre_bind` may take a while: then the pod's status names the node beforehand.

        True for an `async def`; to be overridden where it only writes, and the pod is bound soon.
        """
        return iscoroutinefunction(self.pre_bind)

    def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Any:
        """None to go on; any status ends the attempt, and the pod is unreserved."""
        raise NotImplementedError


class BindPlugin(Plugin):
    """Binds the pod, or says SKIP to let the next plugin do it. May be `async def`."""

    def bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Any:
        """None once the pod is bound, SKIP, or a status that says what broke."""
        raise NotImplementedError


class PostBindPlugin(Plugin):
    """Called after a pod was bound. May be `async def`."""

    def post_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Any:
        raise NotImplementedError


EXTENSION_POINTS: dict[str, type[Plugin]] = {
    "pre_enqueue": PreEnqueuePlugin,
    "queue_sort": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
}
"""By name, in the order in which the scheduler asks them."""


@dataclass(frozen=True, slots=True)
class Section:
    """Part of an explanation to be read: notes, then a table; both may be empty."""

    title: str = ""
    node: str = ""
    """The node that it is about. Of a pod that found a node only sections about that node are printed."""
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """A cell per column. "yes" and "no" are shown in colour."""
    right: tuple[str, ...] = ()
    """The columns of numbers."""


@dataclass(frozen=True, slots=True)
class Details:
    """What a plugin adds to the explanation of a decision."""

    sections: tuple[Section, ...] = ()
    """For `kubesched explain`."""
    data: Any = ()
    """For `kubesched explain -o json`: dictionaries, lists, scalars and dataclasses."""


class ExplainPlugin(Plugin):
    """Adds to what `kubesched explain` says of a decision. Asked last, and never when pods are really scheduled."""

    explained_as: ClassVar[str] = ""
    """The name of the plugin's part in the JSON; unless set, the name of the plugin."""

    def explain(self, cycle: Cycle, outcome: FilterOutcome, node: str) -> Details | None:
        """More than the reasons of rejections say: how much is missing, what was tried, what would help.

        `outcome` has what all filters said of all nodes, and `node` is the winner, or empty.
        """
        raise NotImplementedError

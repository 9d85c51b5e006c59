"""Whatever happens, in whatever order: no pod is lost, none is tried twice at once, and help arrives in the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal, Running
from tests.unit.scheduler.world import pop_pod

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.api.requests import pod_requests
from kubesched.framework.client import SchedulerMode
from kubesched.framework.profile import interests_of
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Assumed, Attempt, Done, Failed, Popped
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

POD_NAMES = ("p0", "p1", "p2", "p3", "p4", "p5")
OURS, SHARED = ("n0", "n1"), ("s0",)
"""On shared nodes others place pods as they like, so only our own nodes must never hold too much."""

REFUSALS = (
    Refusal("Conflict"),
    Refusal("NotFound"),
    Refusal("InternalError"),
    Refusal("InternalError", after_commit=True),
)
LONGEST_BACKOFF = 10


@dataclass
class Open:
    """An attempt that is not over; once its outcome is being written, with the writing."""

    attempt: Attempt
    writing: Running | None = None

    @property
    def uid(self) -> str:
        return self.attempt.queued.pod.uid

    @property
    def is_over(self) -> bool:
        return isinstance(self.attempt.state, Done) if self.writing is None else self.writing.is_over

    @property
    def is_binding(self) -> bool:
        """After a binding that failed the pod is back in the queue, while the failure is still being reported."""
        return isinstance(self.attempt.state, Assumed)


@st.composite
def pods(draw: st.DrawFn) -> PodBuilder:
    pod = make_pod(draw(st.sampled_from(POD_NAMES))).requests(cpu=draw(st.sampled_from(["1", "2", "3", "4"])))
    pod = pod.priority(draw(st.sampled_from([0, 0, 10])))
    match draw(st.sampled_from(["plain", "plain", "plain", "gated", "choosy"])):
        case "gated":
            return pod.gate("wait")
        case "choosy":
            return pod.node_selector(disk="ssd")
    return pod


@st.composite
def nodes(draw: st.DrawFn) -> NodeBuilder:
    """What a node offers never changes under its name, so what was decided on old news still fits."""
    node = make_node(draw(st.sampled_from((*OURS, *SHARED)))).capacity(cpu="4", pods=4)
    node = node.label(disk=draw(st.sampled_from(["ssd", "hdd"])))
    node = node.taint("dedicated") if draw(st.integers(0, 3)) == 3 else node
    return node.cordoned() if draw(st.integers(0, 3)) == 3 else node


class QueueAtWork(RuleBasedStateMachine):
    """Pods and nodes come, change and go; attempts are open in every phase; writes fail; the watch is late."""

    mode = SchedulerMode.PARITY

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.cluster = MemoryCluster()
        self.scheduler = build_scheduler(
            SchedulerSettings(
                clock=lambda: self.now,
                draw=lambda among: 0,
                mode=self.mode,
            ),
            config.default(),
            self.cluster,
            in_tree(),
        )
        self.open: list[Open] = []
        self.made = 0
        self.watch_is_late = False
        self.overbooked_by_others = set(SHARED)

    @property
    def queue(self) -> SchedulingQueue:
        return self.scheduler.queue

    @initialize(
        graceful=st.booleans(), some_nodes=st.lists(nodes(), min_size=1), some_pods=st.lists(pods(), min_size=2)
    )
    def begin(self, graceful: bool, some_nodes: list[NodeBuilder], some_pods: list[PodBuilder]) -> None:
        self.cluster.graceful = graceful
        for node in some_nodes:
            self.cluster.put(node.build())
        for pod in some_pods:
            self.pod_is_created_or_made_anew(pod)
        self._news()

    # -- pods ---------------------------------------------------------------------------------------------------------

    @rule(pod=pods())
    def pod_is_created_or_made_anew(self, pod: PodBuilder) -> None:
        old = self.cluster.pods.get(pod.build().key)
        if old is not None:
            self.cluster.remove(old)
        self.made += 1
        self.cluster.put(make_anew(pod, self.made))
        self._news()

    @precondition(lambda self: self._pending_in_truth())
    @rule(data=st.data(), what=st.sampled_from(["label", "ungate", "tolerate", "shrink", "priority", "terminate"]))
    def pending_pod_changes(self, data: st.DataObject, what: str) -> None:
        pod = data.draw(st.sampled_from(self._pending_in_truth()))
        self.cluster.put(changed(PodBuilder(pod), what, self.now).build())
        self._news()

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data())
    def pod_is_deleted(self, data: st.DataObject) -> None:
        self.cluster.remove(self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))])
        self._news()

    @rule(number=st.integers(0, 1), node=st.sampled_from(SHARED), cpu=st.sampled_from(["500m", "1"]))
    def somebody_else_places_a_pod(self, number: int, node: str, cpu: str) -> None:
        if f"default/other-{number}" not in self.cluster.pods:
            self.made += 1
            self.cluster.put(make_anew(make_pod(f"other-{number}").requests(cpu=cpu).on(node), self.made))
            self._news()

    @precondition(lambda self: self._pending_in_truth())
    @rule(data=st.data(), node=st.sampled_from(SHARED))
    def somebody_else_binds_our_pod(self, data: st.DataObject, node: str) -> None:
        pod = data.draw(st.sampled_from(self._pending_in_truth()))
        if not pod.spec.scheduling_gates:
            self.cluster.put(PodBuilder(pod).on(node).build())
            self._news()

    # -- nodes --------------------------------------------------------------------------------------------------------

    @rule(node=nodes())
    def node_comes_or_changes(self, node: NodeBuilder) -> None:
        self.cluster.put(node.build())
        self._news()

    @rule(name=st.sampled_from((*OURS, *SHARED)))
    def node_goes(self, name: str) -> None:
        if f"Node {name}" in self.cluster.objects:
            self.cluster.remove(make_node(name).build())
            self._news()

    # -- attempts -----------------------------------------------------------------------------------------------------

    @rule(whole=st.integers(0, 3), until=st.sampled_from(["popped", "decided", "written"]))
    def pods_have_their_turns(self, whole: int, until: str) -> None:
        """A few attempts from beginning to end, and one that is left open."""
        self._decide_what_is_popped()
        for _ in range(whole):
            self._begin_attempt(until="written")
        self._begin_attempt(until)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), waits=st.integers(1, 4))
    def open_attempt_goes_on(self, data: st.DataObject, waits: int) -> None:
        one = self.open[data.draw(st.integers(0, len(self.open) - 1))]
        self._decide_what_is_popped()
        for _ in range(waits):
            self._write(one)
        self._forget_what_is_over()

    @rule(verb=st.sampled_from(["bind", "evict"]), refusal=st.sampled_from(REFUSALS))
    def next_write_will_fail(self, verb: str, refusal: Refusal) -> None:
        if verb == "evict":
            self.cluster.evict_refusals.append(refusal)
            return
        self.cluster.bind_refusals.append(refusal)
        if refusal.after_commit:  # until the watch tells, the node is believed to be emptier than it is
            self.overbooked_by_others |= {*OURS}

    # -- news and time ------------------------------------------------------------------------------------------------

    @rule(late=st.booleans(), most=st.integers(0, 2))
    def watch_falls_behind_or_catches_up(self, late: bool, most: int) -> None:
        self.watch_is_late = late
        self.cluster.tell(self.scheduler, most)
        self._news()

    @rule(seconds=st.sampled_from([0.5, 1, 3, 20, 310]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.scheduler.flush_backoff()
        if seconds > 30:
            self.scheduler.flush_leftovers()

    # -- what must always hold ----------------------------------------------------------------------------------------

    @invariant()
    def every_pending_pod_is_in_exactly_one_place(self) -> None:
        waiting = [*self.queue.active(), *self.queue.backoff(), *self.queue.error_backoff()]
        waiting += [*self.queue.unschedulable(), *self.queue.in_flight()]
        places = Counter(queued.pod.uid for queued in waiting)
        for pod in self._pending_as_seen():
            placed = self.scheduler.state.placed(pod)
            count = places[pod.uid] + (placed is not None and placed.assumed)
            # A pod that is being deleted may be skipped for good.
            assert count == 1 or (pod.is_terminating and count == 0), f"{pod.uid} is in {count} places"

    @invariant()
    def only_pending_pods_wait(self) -> None:
        pending = {pod.uid for pod in self._pending_as_seen()}
        queue = self.queue
        waiting = [*queue.active(), *queue.backoff(), *queue.error_backoff(), *queue.unschedulable()]
        assert {queued.pod.uid for queued in waiting} <= pending

    @invariant()
    def no_pod_is_tried_twice_at_once(self) -> None:
        tried = [one.uid for one in self.open if isinstance(one.attempt.state, Popped) or one.is_binding]
        assert len(tried) == len(set(tried))

    @invariant()
    def no_pod_is_bound_twice(self) -> None:
        bound = [uid for uid, _ in self.cluster.bindings]
        assert len(bound) == len(set(bound))

    @invariant()
    def whatever_waits_for_an_event_has_one_to_wait_for(self) -> None:
        plugins = self.scheduler.profiles["default-scheduler"].plugins
        evicting = {one.uid for one in self.open if one.attempt.victims}
        for queued in self.queue.unschedulable():
            assert any(interests_of(plugins[name]) for name in queued.rejectors), f"{queued.key}: nothing wakes it"
            if queued.gating_plugin == "SchedulingGates":
                assert queued.pod.spec.scheduling_gates
            if queued.gating_plugin == "DefaultPreemption":
                assert queued.pod.uid in evicting, f"{queued.key} waits for a preemption that is over"

    @invariant()
    def nothing_is_remembered_for_attempts_that_are_over(self) -> None:
        in_flight = {queued.pod.uid for queued in self.queue.in_flight()}
        assert in_flight == {one.uid for one in self.open if isinstance(one.attempt.state, Popped)}
        if not in_flight:
            assert self.queue.in_flight_events() == []

    @invariant()
    def only_what_is_being_bound_or_was_just_bound_is_assumed(self) -> None:
        state = self.scheduler.state
        placed = [one for row in range(state.nodes.size) for one in state.pods.pods_on(row)]
        assumed = {one.pod.uid for one in placed if one.assumed}
        binding = {one.uid for one in self.open if one.is_binding}
        unconfirmed = {e.new.uid for e in self.cluster.unseen if isinstance(e.new, Pod) and e.new.spec.node_name}
        assert assumed <= binding | unconfirmed, "assumed, and nothing will confirm or forget it"

    @invariant()
    def no_node_of_ours_holds_more_than_it_offers(self) -> None:
        for name in {*OURS} - self.overbooked_by_others:
            held = [pod for pod in self.cluster.pods.values() if pod.spec.node_name == name]
            assert sum(pod_requests(pod)["cpu"].milli() for pod in held) <= 4000
            assert len(held) <= 4

    # -- how it must end ----------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """With room for all and no more failures, every pod without gates is bound once the backoffs are over."""
        self.cluster.bind_refusals.clear()
        self.cluster.evict_refusals.clear()
        self._settle()
        self.cluster.put(make_node("big").capacity(cpu="64").label(disk="ssd").build())
        for _ in range(LONGEST_BACKOFF + 2):
            self._settle()
            self.now += 1
            self.scheduler.flush_backoff()
        left = [pod for pod in self._pending_in_truth() if not pod.spec.scheduling_gates and not pod.is_terminating]
        assert not left, f"never bound: {[pod.uid for pod in left]}"

    def _settle(self) -> None:
        """All news are told, everybody who may have a turn has it, and everything is written."""
        self.watch_is_late = False
        self._news()
        while True:
            self._decide_what_is_popped()
            for one in self.open:
                while not one.is_over:
                    self._write(one)
            self._forget_what_is_over()
            self._begin_attempt(until="popped")
            if not self.open:
                return

    # -- steps --------------------------------------------------------------------------------------------------------

    def _begin_attempt(self, until: str) -> None:
        attempt = pop_pod(self.scheduler)
        if attempt is None:
            return
        one = Open(attempt)
        self.open.append(one)
        if until == "popped":
            return
        self._decide_what_is_popped()
        while until == "written" and not one.is_over:
            self._write(one)
        self._forget_what_is_over()

    def _decide_what_is_popped(self) -> None:
        """One decision at a time. A failure is reported at once; only what is written about it may wait."""
        for one in self.open:
            if isinstance(one.attempt.state, Popped):
                self.scheduler.decide(one.attempt)
                assert isinstance(one.attempt.state, Assumed | Failed | Done)
                if isinstance(one.attempt.state, Failed):
                    self._write(one)

    def _write(self, one: Open) -> None:
        if one.is_over:
            return
        if one.writing is None:
            one.writing = Running(self.scheduler.finish(one.attempt))
        one.writing.go_on()
        self._news()

    def _news(self) -> None:
        if not self.watch_is_late:
            self.cluster.tell(self.scheduler)

    # -- the model ----------------------------------------------------------------------------------------------------

    def _forget_what_is_over(self) -> None:
        self.open = [one for one in self.open if not one.is_over]

    def _pending_in_truth(self) -> list[Pod]:
        return [pod for _, pod in sorted(self.cluster.pods.items()) if not pod.spec.node_name]

    def _pending_as_seen(self) -> list[Pod]:
        return [pod for pod in self.scheduler.pods.values() if not pod.spec.node_name]


def make_anew(pod: PodBuilder, number: int) -> Pod:
    """Under its name, but with a uid of its own. All start times differ, so that victims have an order."""
    built = make_pod(pod.build().name, uid=f"{pod.build().name}-{number}").build()
    return (
        PodBuilder(built)
        .spec(**{name: getattr(pod.build().spec, name) for name in pod.build().spec.__struct_fields__})
        .started(f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z")
        .build()
    )


def changed(pod: PodBuilder, what: str, now: float) -> PodBuilder:
    match what:
        case "label":
            return pod.label(seen=str(now))
        case "ungate":
            return pod.spec(scheduling_gates=())
        case "tolerate":
            return pod.toleration("dedicated", operator="Exists")
        case "shrink":
            return pod.requests(cpu="250m")
        case "priority":
            return pod.priority(5)
        case _:
            return pod.terminating()


class SparingQueueAtWork(QueueAtWork):
    """As daemons have it: pods that would only fail as equal ones did are not tried."""

    mode = SchedulerMode.BATCHED

    @invariant()
    def nobody_is_spared_who_would_find_a_node(self) -> None:
        if not self.queue.has_next and not self.queue.in_flight():
            for queued in self.queue.skipped():
                assert not self.scheduler.engine.decide(queued.pod).node, f"{queued.key} waits in vain"


TestQueueAtWork = QueueAtWork.TestCase
TestSparingQueueAtWork = SparingQueueAtWork.TestCase
TestQueueAtWork.settings = TestSparingQueueAtWork.settings = settings(
    max_examples=80, stateful_step_count=50, deadline=None
)

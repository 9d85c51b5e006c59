"""Whatever happens, in whatever order: no device is given away twice, and what is not used is free again."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace
from tests.device_builders import device, make_claim, make_class, make_counters, make_slice, request, with_claims
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal, Running
from tests.unit.scheduler.world import pop_pod

from kubesched import config
from kubesched.api.device_claims import AllocatedDevice, DeviceRequest, ResourceClaim, ResourceClaimStatus
from kubesched.api.devices import Device
from kubesched.api.quantity import parse_quantity
from kubesched.framework.client import SchedulerMode
from kubesched.plugins.registry import in_tree
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.ledger import Ledger
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.testing import make_node, make_pod

PODS = ("p0", "p1", "p2", "p3", "p4")
CLAIMS = ("c0", "c1", "c2", "c3")
WHOLE = (device("w0"), device("w1"), device("shared", shared=True, capacity={"mem": "4Gi"}))
PARTS = (device("half-0", draws={"x": 5}), device("half-1", draws={"x": 5}), device("all", draws={"x": 10}))
COUNTER = 10
REQUESTS = (
    request("r"),
    request("r", 2),
    request("r", everything=True),
    request("r", admin=True),
    request("r", capacity={"mem": "3Gi"}),
)

WANTED = st.lists(
    st.tuples(st.sampled_from(CLAIMS), st.sampled_from(REQUESTS)), max_size=2, unique_by=lambda wanted: wanted[0]
)
"""The claims of a pod, and what is asked for if they are not there already."""


class Allocating(RuleBasedStateMachine):
    """A scheduler whose writes are interrupted by anything, on two nodes with devices."""

    mode = SchedulerMode.PARITY

    @initialize(wanted=st.lists(WANTED, min_size=len(PODS), max_size=len(PODS)))
    def begin(self, wanted: list[list[tuple[str, DeviceRequest]]]) -> None:
        self.now = 0.0
        self.cluster = MemoryCluster()
        self.scheduler = build_scheduler(
            SchedulerSettings(
                clock=lambda: self.now,
                draw=lambda among: 0,
                now=lambda: self.now,
                mode=self.mode,
            ),
            config.default(),
            self.cluster,
            in_tree(),
        )
        self.open: list[Running] = []
        self.made = 0
        slices = (make_slice("n0", *WHOLE), make_counters("n1", x=COUNTER), make_slice("n1", *PARTS, of=2))
        served = make_class(resource="example.com/gpu")
        for obj in (make_node("n0").build(), make_node("n1").build(), served, *slices):
            self.cluster.put(obj)
        for name, claims in zip(PODS, wanted):
            self.pod(name, claims, is_told=True)

    # -- what users do ------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(PODS), claims=WANTED, is_told=st.booleans())
    def pod(self, name: str, claims: list[tuple[str, DeviceRequest]], is_told: bool) -> None:
        """A pod with claims that may be there already; without any it asks in the old way."""
        if f"default/{name}" in self.cluster.pods:
            return
        for claim, asked in claims:
            if self.cluster.claim(f"default/{claim}") is None:
                self.made += 1
                made = make_claim(claim, asked)
                self.cluster.put(replace(made, metadata=replace(made.metadata, uid=f"claim {self.made}")))
        self.made += 1
        pod = with_claims(make_pod(name, uid=f"pod {self.made}"), *(claim for claim, _ in claims))
        self.cluster.put((pod if claims else pod.requests({"example.com/gpu": "1"})).build())
        if is_told:
            self.cluster.tell(self.scheduler)

    @rule(name=st.sampled_from(PODS))
    def delete_pod(self, name: str) -> None:
        if f"default/{name}" in self.cluster.pods:
            self.cluster.remove(self.cluster.pods[f"default/{name}"])

    @rule(name=st.sampled_from(CLAIMS))
    def delete_claim(self, name: str) -> None:
        """As long as it is allocated its finalizer keeps it."""
        claim = self.cluster.claim(f"default/{name}")
        if claim is not None and claim.status.allocation is None:
            self.cluster.remove(claim)

    @rule(name=st.sampled_from(CLAIMS))
    def label_claim(self, name: str) -> None:
        claim = self.cluster.claim(f"default/{name}")
        if claim is not None:
            self.made += 1
            labels = {"generation": str(self.made)}
            self.cluster.put(replace(claim, metadata=replace(claim.metadata, labels=labels)))

    # -- what the controller does -------------------------------------------------------------------------------------

    @rule()
    def release_claims_of_pods_that_are_gone(self) -> None:
        alive = {pod.uid for pod in self.cluster.pods.values()}
        for claim in self._claims():
            owner = claim.metadata.controller
            if owner is not None and owner.uid not in alive:
                self.cluster.remove(claim)
                continue
            users = tuple(one for one in claim.status.reserved_for if one.uid in alive)
            if users != claim.status.reserved_for:
                status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
                self.cluster.put(replace(claim, status=status))

    # -- what the scheduler does --------------------------------------------------------------------------------------

    @rule(steps=st.lists(st.integers(0, 30), min_size=1, max_size=5))
    def attempts(self, steps: list[int]) -> None:
        """A few attempts, each carried out up to somewhere."""
        for some in steps:
            attempt = pop_pod(self.scheduler)
            if attempt is not None:
                self.scheduler.decide(attempt)
                self.open.append(Running(self.scheduler.finish(attempt)))
                self._go_on(len(self.open) - 1, some)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 9), steps=st.integers(1, 30))
    def go_on(self, which: int, steps: int) -> None:
        self._go_on(which % len(self.open), steps)

    def _go_on(self, which: int, steps: int) -> None:
        for _ in range(steps):
            if not self.open[which].is_over:
                self.open[which].go_on()
        self.open = [running for running in self.open if not running.is_over]

    @rule(reason=st.sampled_from(["Conflict", "InternalError"]), of_claim=st.booleans())
    def refuse(self, reason: str, of_claim: bool) -> None:
        if of_claim:
            self.cluster.claim_refusals.append(Refusal(reason))
        else:
            self.cluster.bind_refusals.append(Refusal(reason))

    @rule(most=st.integers(1, 9))
    def tell(self, most: int) -> None:
        self.cluster.tell(self.scheduler, most)

    @rule(seconds=st.sampled_from([1, 11, 400]))
    def tell_all_and_wait(self, seconds: int) -> None:
        self.cluster.tell(self.scheduler)
        self.now += seconds
        self.scheduler.flush_backoff()
        self.scheduler.flush_leftovers()

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def no_device_is_given_away_twice(self) -> None:
        held = Counter(device.id for device in self._held() if device.share_id is None)
        assert all(times == 1 for times in held.values()), held

    @invariant()
    def no_capacity_is_given_away_twice(self) -> None:
        taken = sum(parse_quantity(one.consumed_capacity["mem"]).value() for one in self._held() if one.share_id)
        assert taken <= 4 * 2**30

    @invariant()
    def counters_do_not_go_below_zero(self) -> None:
        drawn = {part.name: _draws(part) for part in PARTS}
        assert sum(drawn.get(one.device, 0) for one in self._held() if one.pool == "n1") <= COUNTER

    @invariant()
    def what_is_allocated_is_taken_in_the_eyes_of_the_scheduler_once_it_has_seen_it(self) -> None:
        if self.cluster.unseen:
            return
        believed = set(self._ledger().devices_in_use())
        assert {device.id for device in self._held() if device.share_id is None} <= believed

    def teardown(self) -> None:
        """In the end all that is open is finished and seen; then nothing is held that no claim has."""
        if not hasattr(self, "cluster"):
            return
        for running in self.open:
            running.to_the_end()
        self.cluster.tell(self.scheduler)
        ledger = self._ledger()
        assert not ledger._pending
        assert not ledger._assumed
        assert set(ledger.devices_in_use()) == {one.id for one in self._held() if one.share_id is None}
        assert set(ledger.capacity_in_use()) == {one.id for one in self._held() if one.share_id is not None}
        self.no_device_is_given_away_twice()
        self._everybody_who_runs_has_devices()

    def _everybody_who_runs_has_devices(self) -> None:
        for pod in self.cluster.pods.values():
            for entry in pod.spec.resource_claims if pod.spec.node_name else ():
                claim = self.cluster.claim(f"default/{entry.resource_claim_name}")
                assert claim is not None
                assert claim.status.allocation is not None
                assert claim.is_reserved_for(pod.uid)

    def _claims(self) -> list[ResourceClaim]:
        return [obj for obj in self.cluster.objects.values() if isinstance(obj, ResourceClaim)]

    def _held(self) -> list[AllocatedDevice]:
        allocations = (claim.status.allocation for claim in self._claims())
        results = (allocation.devices.results for allocation in allocations if allocation is not None)
        return [device for devices in results for device in devices if not device.admin_access]

    def _ledger(self) -> Ledger:
        ledger = self.scheduler.state.companion(ClusterDevices).ledger
        ledger.refresh()
        return ledger


def _draws(part: Device) -> int:
    return sum(int(counter.value) for used in part.consumes_counters for counter in used.counters.values())


class AllocatingTogether(Allocating):
    """As daemons have it: pods that share a claim share what is being allocated to it, and write for each other."""

    mode = SchedulerMode.BATCHED


TestAllocating = Allocating.TestCase
TestAllocatingTogether = AllocatingTogether.TestCase
TestAllocating.settings = TestAllocatingTogether.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None
)

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.daemon.metric_values import value_of
from tests.unit.kube.scripted_server import Exchange, answering, serving, talking_to
from tests.unit.plugins import volume_builders as volumes
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members, nodes
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal
from tests.unit.scheduler.world import World

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.live_client import LiveClient
from kubesched.daemon.metrics.census import Census, resource_lines
from kubesched.daemon.metrics.listener import ClientMetrics, SchedulerMetrics
from kubesched.daemon.metrics.registry import SCHEDULER, MetricsRegistry
from kubesched.framework.client import ClientError
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PermitPlugin, Plugin, PreFilterPlugin, ReservePlugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import Code, Status
from kubesched.kube.events import EventRecorder
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.testing import make_node, make_pod

# Of kube-scheduler v1.36: metric, kind, labels, first bucket, factor, number of buckets.
UPSTREAM = """
scheduler_schedule_attempts_total counter result,profile
scheduler_event_handling_duration_seconds histogram event 0.0001 2 12
scheduler_scheduling_attempt_duration_seconds histogram result,profile 0.001 2 15
scheduler_scheduling_algorithm_duration_seconds histogram - 0.001 2 15
scheduler_preemption_victims histogram - 1 2 7
scheduler_preemption_attempts_total counter -
scheduler_pending_pods gauge queue
scheduler_inflight_events gauge event
scheduler_goroutines gauge operation
scheduler_pod_scheduling_sli_duration_seconds histogram attempts 0.01 2 20
scheduler_pod_scheduling_attempts histogram - 1 2 5
scheduler_pod_scheduled_after_flush_total counter -
scheduler_framework_extension_point_duration_seconds histogram extension_point,status,profile 0.0001 2 12
scheduler_plugin_execution_duration_seconds histogram plugin,extension_point,status 0.00001 1.5 20
scheduler_queueing_hint_execution_duration_seconds histogram plugin,event,hint 0.00001 1.5 20
scheduler_queue_incoming_pods_total counter queue,event
scheduler_permit_wait_duration_seconds histogram result 0.001 2 15
scheduler_cache_size gauge type
scheduler_unschedulable_pods gauge plugin,profile
scheduler_plugin_evaluation_total counter plugin,extension_point,profile
scheduler_preemption_goroutines_duration_seconds histogram result 0.01 2 20
scheduler_preemption_goroutines_execution_total counter result
scheduler_async_api_call_execution_total counter call_type,result
scheduler_async_api_call_execution_duration_seconds histogram call_type,result 0.001 2 15
scheduler_pending_async_api_calls gauge call_type
scheduler_resourceclaim_creates_total counter status
scheduler_dra_bindingconditions_allocations_total counter profile,driver,status
scheduler_dra_bindingconditions_wait_duration_seconds histogram profile,driver,status 0.1 2 14
scheduler_podgroup_schedule_attempts_total counter result,profile
scheduler_podgroup_scheduling_attempt_duration_seconds histogram result,profile 0.001 2 15
scheduler_podgroup_scheduling_algorithm_duration_seconds histogram - 0.001 2 15
"""
EVERY_GATE = FeatureGates({"SchedulerAsyncAPICalls": True, "GenericWorkload": True})


@pytest.mark.parametrize("row", UPSTREAM.strip().splitlines(), ids=lambda row: row.split()[0])
def test_series_is_that_of_upstream(row: str) -> None:
    name, kind, labels, *buckets = row.split()
    series = next(series for series in SCHEDULER if series.name == name)
    assert (series.kind, ",".join(series.labels) or "-") == (kind, labels)
    if buckets:
        start, factor, count = map(float, buckets)
        assert series.buckets == pytest.approx([start * factor**i for i in range(int(count))])


class Watched(World):
    """A world whose scheduler is watched; durations are those of a clock that ticks with every look at it."""

    def __init__(self, *objects: object, detailed: bool = False, gates: FeatureGates | None = None) -> None:
        super().__init__()
        self.ticks = 0.0
        self.registry = MetricsRegistry(gates)
        draw = lambda: 0.0 if detailed else 0.5  # noqa: E731
        self.metrics = SchedulerMetrics(self.registry, self.scheduler.profiles, clock=self.tick, draw=draw)
        self.scheduler.listeners.append(self.metrics)
        Census(self.registry, self.scheduler)
        self.see(*objects)  # type: ignore[arg-type]

    def tick(self) -> float:
        self.ticks += 0.001
        return self.ticks

    def read(self, sample: str, **labels: str) -> float:
        return value_of(self.registry, sample, **labels)


def test_pod_that_is_bound_counts_as_one_scheduled_attempt_with_its_durations() -> None:
    world = Watched(make_node("n"), make_pod("p"))
    world.tried()
    labels = {"result": "scheduled", "profile": "default-scheduler"}
    assert world.read("scheduler_schedule_attempts_total", **labels) == 1
    assert world.read("scheduler_scheduling_attempt_duration_seconds_count", **labels) == 1
    assert world.read("scheduler_scheduling_algorithm_duration_seconds_count") == 1
    assert world.read("scheduler_pod_scheduling_attempts_sum") == 1
    assert world.read("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 1
    for point in ("PreFilter", "Filter", "Reserve", "Permit", "PreBind", "Bind", "PostBind"):
        found = {"extension_point": point, "status": "Success", "profile": "default-scheduler"}
        assert world.read("scheduler_framework_extension_point_duration_seconds_count", **found) == 1


def test_points_around_a_binding_are_measured() -> None:
    world = Watched(make_node("n"), make_pod("p"))
    world.cluster.bind_refusals.append(Refusal("InternalError"))
    world.tried()
    points = "scheduler_framework_extension_point_duration_seconds_count"
    expected = {"PreEnqueue": ("Success", 2), "PreBindPreFlight": ("Skip", 1), "Unreserve": ("Success", 1)}
    for point, (status, times) in expected.items():
        found = world.read(points, extension_point=point, status=status, profile="default-scheduler")
        assert found == times, point


def test_plugins_that_reserve_or_make_room_are_measured_in_attempts_that_are_drawn() -> None:
    full = make_pod("full").requests(cpu="4").on("n").priority(100)
    world = Watched(make_node("n").capacity(cpu="4"), full, make_pod("p").requests(cpu="1"), detailed=True)
    world.tried()
    world.lose(full)
    world.tried()
    plugins = "scheduler_plugin_execution_duration_seconds_count"
    makes_room = {"plugin": "DefaultPreemption", "extension_point": "PostFilter", "status": "Unschedulable"}
    assert world.read(plugins, **makes_room) == 1
    assert world.read(plugins, plugin="VolumeBinding", extension_point="Reserve", status="Success") == 1


def test_scoring_is_measured_where_there_is_a_choice() -> None:
    world = Watched(make_node("a"), make_node("b"), make_pod("p"))
    world.tried()
    for point in ("PreScore", "Score"):
        assert world.read("scheduler_framework_extension_point_duration_seconds_count", extension_point=point) == 1


def test_pod_that_fits_nowhere_is_counted_by_the_plugin_that_rejected_it() -> None:
    world = Watched(make_node("n"), make_pod("p").node_selector(rack="7"))
    world.tried()
    assert world.read("scheduler_schedule_attempts_total", result="unschedulable") == 1
    assert world.read("scheduler_unschedulable_pods", plugin="NodeAffinity", profile="default-scheduler") == 1
    assert world.read("scheduler_pending_pods", queue="unschedulable") == 1
    assert world.read("scheduler_preemption_attempts_total") == 1
    assert world.read("scheduler_preemption_victims_count") == 0


def test_gauge_of_rejected_pods_goes_down_when_the_pod_goes() -> None:
    pod = make_pod("p").node_selector(rack="7")
    world = Watched(make_node("n"), pod)
    world.tried()
    world.read("scheduler_unschedulable_pods")
    world.lose(pod)
    assert world.read("scheduler_unschedulable_pods") == 0


def test_bind_that_is_refused_counts_as_an_error() -> None:
    world = Watched(make_node("n"), make_pod("p"))
    world.cluster.bind_refusals.append(Refusal("InternalError"))
    world.tried()
    assert world.read("scheduler_schedule_attempts_total", result="error") == 1
    found = world.read(
        "scheduler_framework_extension_point_duration_seconds_count", extension_point="Bind", status="Error"
    )
    assert found == 1
    assert world.read("scheduler_goroutines", operation="binding") == 0


def test_preemption_counts_victims_and_evictions() -> None:
    low = make_pod("low").requests(cpu="2").priority(1).on("n")
    world = Watched(make_node("n").capacity(cpu="2"), low, make_pod("high").requests(cpu="2").priority(9))
    world.tried()
    assert world.read("scheduler_preemption_attempts_total") == 1
    assert world.read("scheduler_preemption_victims_sum") == 1
    assert world.read("scheduler_preemption_goroutines_execution_total", result="success") == 1
    assert world.read("scheduler_preemption_goroutines_duration_seconds_count", result="success") == 1


def test_victims_that_are_on_their_way_out_already_are_not_counted_again() -> None:
    leaving = make_pod("leaving").requests(cpu="2").priority(1).on("n").terminating()
    world = Watched(make_node("n").capacity(cpu="2"), leaving, make_pod("high").requests(cpu="2").priority(9))
    world.tried()
    assert world.read("scheduler_preemption_attempts_total") == 1
    assert world.read("scheduler_preemption_victims_count") == 0


def test_queues_count_who_comes_and_why() -> None:
    world = Watched(make_node("n"), make_pod("p").node_selector(rack="7"))
    world.tried()
    incoming = "scheduler_queue_incoming_pods_total"
    assert world.read(incoming, queue="active", event="UnschedulablePodAdd") == 1
    assert world.read(incoming, queue="unschedulable", event="ScheduleAttemptFailure") == 1
    world.see(make_node("other").label(rack="7"))
    assert world.read(incoming, event="NodeAdd") == 1
    hint = {"plugin": "NodeAffinity", "event": "NodeAdd", "hint": "Queue"}
    assert world.read("scheduler_queueing_hint_execution_duration_seconds_count", **hint) == 1


def test_pod_that_need_not_sit_out_its_backoff_comes_to_the_active_queue_by_that() -> None:
    world = Watched(make_node("n"), make_pod("p").node_selector(rack="7"))
    world.tried()
    world.see(make_node("other").label(rack="7"))
    assert world.read("scheduler_queue_incoming_pods_total", queue="backoff", event="NodeAdd") == 1
    world.tried()
    assert world.read("scheduler_queue_incoming_pods_total", queue="active", event="PopFromBackoffQ") == 1


class Hesitant(PermitPlugin):
    """Lets pods wait for a while."""

    name = "Hesitant"

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        return Status(Code.WAIT), 30.0


class Broken(PreFilterPlugin):
    """Breaks."""

    name = "Broken"

    def pre_filter(self, cycle: Cycle) -> None:
        raise ValueError("out of luck")


def enabling(plugin: type[Plugin], point: str) -> Watched:
    world = Watched()
    configuration = config.from_plain(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {point: {"enabled": [{"name": plugin.name}]}}}],
        }
    )
    registry = Registry((*IN_TREE, plugin))
    world.scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: world.now, draw=lambda among: 0),
        configuration,
        world.cluster,
        registry,
        listeners=[world.metrics],
    )
    return world


def test_wait_for_permission_is_measured_by_how_it_ended() -> None:
    world = enabling(Hesitant, "permit")
    world.see(make_node("n"), make_pod("p"))
    world.decided()
    world.now += 31
    for attempt in world.scheduler.permitted():
        world.finish(attempt)
    assert world.read("scheduler_permit_wait_duration_seconds_count", result="Unschedulable") == 1
    waiting = {"extension_point": "Permit", "status": "Wait"}
    assert world.read("scheduler_framework_extension_point_duration_seconds_count", **waiting) == 1
    assert world.read("scheduler_schedule_attempts_total", result="unschedulable") == 1


def test_search_for_a_node_is_over_before_anything_is_set_aside_there() -> None:
    class Slow(ReservePlugin):
        name = "Slow"

        def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
            world.ticks += 100

    world = enabling(Slow, "reserve")
    world.see(make_node("n"), make_pod("p"))
    world.tried()
    assert 0 < world.read("scheduler_scheduling_algorithm_duration_seconds_sum") < 100
    assert world.read("scheduler_scheduling_attempt_duration_seconds_sum") > 100


def test_attempt_that_breaks_counts_as_an_error() -> None:
    world = enabling(Broken, "preFilter")
    world.see(make_node("n"), make_pod("p"))
    world.tried()
    assert world.read("scheduler_schedule_attempts_total", result="error") == 1


def test_gated_pods_are_not_counted_as_unschedulable() -> None:
    world = Watched(make_pod("p").gate("wait"))
    assert world.read("scheduler_pending_pods", queue="gated") == 1
    assert world.read("scheduler_pending_pods", queue="unschedulable") == 0


def test_events_are_measured_by_what_they_amount_to() -> None:
    world = Watched(make_node("n"))
    world.see(make_node("n").label(rack="7"))
    world.see(make_pod("p"))
    for event in ("NodeAdd", "NodeUpdateNodeLabel", "UnschedulablePodAdd"):
        assert world.read("scheduler_event_handling_duration_seconds_count", event=event) == 1


def test_pod_that_is_bound_leaves_the_queue_and_comes_to_the_cache() -> None:
    world = Watched(make_node("n"), make_pod("p"))
    world.tried()
    count = "scheduler_event_handling_duration_seconds_count"
    events = ("UnschedulablePodAdd", "AssignedPodAdd", "UnschedulablePodDelete", "AssignedPodUpdate")
    assert [world.read(count, event=event) for event in events] == [1, 1, 1, 0]


def test_pods_that_wait_for_another_scheduler_are_no_events() -> None:
    world = Watched(make_pod("p").spec(scheduler_name="another"))
    assert world.read("scheduler_event_handling_duration_seconds_count") == 0


def test_cache_is_counted_on_every_scrape() -> None:
    world = Watched(make_node("n"), make_pod("p"))
    attempt = world.decided()
    sizes = {kind: world.read("scheduler_cache_size", type=kind) for kind in ("nodes", "pods", "assumed_pods")}
    assert sizes == {"nodes": 1, "pods": 1, "assumed_pods": 1}
    world.finish(attempt)
    assert world.read("scheduler_cache_size", type="assumed_pods") == 0


def test_plugins_are_measured_only_in_attempts_that_are_drawn() -> None:
    plugins = "scheduler_plugin_execution_duration_seconds_count"
    for detailed in (True, False):
        world = Watched(make_node("a"), make_node("b"), make_pod("p"), detailed=detailed)
        world.tried()
        assert (world.read(plugins, extension_point="PreFilter", plugin="NodeResourcesFit") == 1) is detailed
        assert (world.read(plugins, extension_point="Bind", plugin="DefaultBinder") == 1) is detailed


def test_evaluations_count_attempts_in_which_a_plugin_had_a_say() -> None:
    world = Watched(make_node("a"), make_node("b"), make_pod("p").requests(cpu="1"), make_pod("q").requests(cpu="1"))
    world.tried()
    world.tried()
    count = "scheduler_plugin_evaluation_total"
    assert world.read(count, plugin="NodeResourcesFit", extension_point="Filter") == 2
    assert world.read(count, plugin="NodeResourcesFit", extension_point="Score") == 2
    assert world.read(count, plugin="PodTopologySpread", extension_point="PreFilter") == 2
    assert world.read(count, plugin="NodePorts", extension_point="Filter") == 0
    assert world.read(count, plugin="NodeResourcesFit", extension_point="Filter") == 2, "a scrape counts nothing twice"


def test_calls_are_counted_where_the_feature_is_on() -> None:
    for gates, expected in ((EVERY_GATE, 1), (FeatureGates(), 0)):
        world = Watched(gates=gates)
        writer = ClientMetrics(world.registry, world.tick)
        writer.writing("pod_binding", 1)
        assert world.read("scheduler_pending_async_api_calls", call_type="pod_binding") == expected
        writer.writing("pod_binding", -1)
        writer.wrote("pod_binding", "success", 0.1)
        assert world.read("scheduler_async_api_call_execution_total", call_type="pod_binding") == expected


def test_volumes_that_cannot_be_bound_are_counted_by_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*args: object, **kwargs: object) -> None:
        raise ClientError("InternalError", "no storage today")

    monkeypatch.setattr(MemoryCluster, "patch", refuse)
    world = Watched(make_node("n"), volumes.storage_class("slow"), volumes.claim("data", storageClassName="slow"))
    world.see(volumes.pod("p", claims=("data",)))
    assert world.tried().outcome == "bind-error"
    assert world.read("scheduler_volume_scheduling_stage_error_total", operation="bind") == 1


def test_work_before_binding_is_measured_where_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def patch(*args: object, **kwargs: object) -> None:
        world.ticks += 50

    async def wait(*args: object, **kwargs: object) -> bool:
        return True

    monkeypatch.setattr(MemoryCluster, "patch", patch)
    monkeypatch.setattr(MemoryCluster, "wait", wait)
    storage = (volumes.storage_class("slow"), volumes.claim("data", storageClassName="slow"))
    world = Watched(make_node("n"), *storage, detailed=True)
    world.see(volumes.pod("p", claims=("data",)))
    assert world.tried().outcome == "bound"
    before = {"extension_point": "PreBind", "plugin": "VolumeBinding"}
    assert world.read("scheduler_plugin_execution_duration_seconds_sum", **before) > 50
    assert (
        world.read(
            "scheduler_plugin_execution_duration_seconds_count", plugin="DynamicResources", extension_point="PreBind"
        )
        == 0
    )


def test_calls_of_a_client_are_pending_until_they_are_answered() -> None:
    async def main() -> None:
        world = Watched(gates=EVERY_GATE)
        pending: list[float] = []

        async def looking_meanwhile(exchange: Exchange) -> None:
            pending.append(world.read("scheduler_pending_async_api_calls", call_type="pod_binding"))
            await answering(201)(exchange)

        async with serving(looking_meanwhile) as server, talking_to(server) as client:
            events = EventRecorder(client, "test")
            live = LiveClient(client, events, ObjectWaiter(), observer=ClientMetrics(world.registry, world.tick))
            await live.bind(make_pod("p").build(), "n")
        pending.append(world.read("scheduler_pending_async_api_calls", call_type="pod_binding"))
        assert pending == [1, 0]
        done = {"call_type": "pod_binding", "result": "success"}
        assert world.read("scheduler_async_api_call_execution_total", **done) == 1

    asyncio.run(main())


def test_resources_of_pods_are_lines_by_pod_and_resource() -> None:
    world = World(make_node("n"))
    pod = make_pod("p").requests(cpu="1500m", memory="1Ki").on("n").priority(5)
    world.see(pod, make_pod("done").requests(cpu="1").on("n").status(phase="Succeeded"))
    text = "".join(resource_lines(world.cluster.pods.values(), world.scheduler.state))
    samples = {
        (s.name, s.labels["pod"], s.labels["resource"], s.labels["unit"]): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }
    assert samples == {
        ("kube_pod_resource_request", "p", "cpu", "cores"): 1.5,
        ("kube_pod_resource_request", "p", "memory", "bytes"): 1024,
    }
    assert 'namespace="default",pod="p",node="n",scheduler="default-scheduler",priority="5",resource="cpu"' in text


def test_groups_are_counted_once_and_their_pods_each() -> None:
    world = GroupWorld(*nodes(2))
    registry = MetricsRegistry(EVERY_GATE)
    Census(registry, world.scheduler)
    world.scheduler.listeners.append(
        SchedulerMetrics(registry, world.scheduler.profiles, clock=lambda: 0.0, draw=lambda: 0.0)
    )
    world.see(make_gang("a", 2), make_gang("b", 2), *members("a", 2), *members("b", 2), *members("c", 1))
    world.try_all()

    group, pod = "scheduler_podgroup_schedule_attempts_total", "scheduler_schedule_attempts_total"
    for result, groups, pods in (("scheduled", 1, 2), ("unschedulable", 1, 2)):
        assert value_of(registry, group, result=result, profile="default-scheduler") == groups
        assert value_of(registry, pod, result=result, profile="default-scheduler") == pods
    assert value_of(registry, "scheduler_pending_pods", queue="backoff") == 2
    assert value_of(registry, "scheduler_pending_pods", queue="unschedulable") == 1

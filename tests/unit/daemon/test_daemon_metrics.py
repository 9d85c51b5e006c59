from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.builders import make_node, make_pod
from tests.unit.scheduler.memory_writer import Refusal
from tests.unit.scheduler.world import World

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.daemon.checks import OptionsError
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.metrics.catalogue import CLIENT, HEALTH, PROCESS, SCHEDULER
from kubesched.daemon.metrics.census import Census
from kubesched.daemon.metrics.client import ClientMetrics, LeaderElectionMetrics, WorkQueueMetrics
from kubesched.daemon.metrics.exposition import number
from kubesched.daemon.metrics.observer import SchedulerMetrics
from kubesched.daemon.metrics.registry import MetricsRegistry, allow_lists
from kubesched.daemon.metrics.resources import resource_lines
from kubesched.daemon.metrics.setup import registry_of
from kubesched.daemon.options import parse_options
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PermitPlugin, Plugin, PreFilterPlugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import Code, Status
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.observing import observed
from kubesched.scheduler.scheduler import Scheduler

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
"""
EVERY_GATE = FeatureGates({"SchedulerAsyncAPICalls": True})


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
        self.metrics = SchedulerMetrics(self.registry, clock=self._tick, draw=lambda among: 0 if detailed else 50)
        scheduler = self.scheduler
        self.scheduler = observed(scheduler, self.metrics)
        self.metrics.count_evaluations_of(scheduler)
        Census(self.registry, scheduler)
        self.see(*objects)  # type: ignore[arg-type]

    def _tick(self) -> float:
        self.ticks += 0.001
        return self.ticks

    def read(self, sample: str, **labels: str) -> float:
        return value_of(self.registry, sample, **labels)


def value_of(registry: MetricsRegistry, sample: str, **labels: str) -> float:
    """The sum of all samples of this name with at least these labels."""
    text = registry.exposed().decode()
    return sum(
        each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if each.name == sample and labels.items() <= each.labels.items()
    )


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
    scheduler = Scheduler(configuration, world.cluster, clock=lambda: world.now, draw=lambda among: 0, plugins=registry)
    world.scheduler = observed(scheduler, world.metrics)
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


def test_belief_is_counted_on_every_scrape() -> None:
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
        world.metrics.writing("pod_binding", 1)
        assert world.read("scheduler_pending_async_api_calls", call_type="pod_binding") == expected
        world.metrics.writing("pod_binding", -1)
        world.metrics.wrote("pod_binding", "success", 0.1)
        assert world.read("scheduler_async_api_call_execution_total", call_type="pod_binding") == expected


def test_disabled_metric_is_not_there_and_is_counted() -> None:
    registry = MetricsRegistry(disabled=["scheduler_pending_pods"])
    registry.family("scheduler_pending_pods").child("active").set(3)
    assert "scheduler_pending_pods" not in registry.exposed().decode()
    assert value_of(registry, "disabled_metrics_total") == 1


def test_label_value_that_is_not_allowed_reads_as_unexpected() -> None:
    allowed = allow_lists({"scheduler_queue_incoming_pods_total,event": "NodeAdd,PodAdd"})
    registry = MetricsRegistry(allow_lists=allowed)
    family = registry.family("scheduler_queue_incoming_pods_total")
    for event in ("NodeAdd", "Surprise", "Surprise"):
        family.child("active", event).inc()
    assert value_of(registry, "scheduler_queue_incoming_pods_total", event="NodeAdd") == 1
    assert value_of(registry, "scheduler_queue_incoming_pods_total", event="unexpected") == 2
    assert value_of(registry, "cardinality_enforcement_unexpected_categorizations_total") == 2


def test_command_line_goes_before_the_manifest_of_allowed_values(tmp_path: Path) -> None:
    manifest = tmp_path / "allowed.yaml"
    manifest.write_text('allowListMapping:\n  "workqueue_depth,name": "a"\n  "workqueue_adds_total,name": "a"\n')
    arguments = [f"--allow-metric-labels-manifest={manifest}", "--allow-metric-labels=workqueue_depth,name=b"]
    registry = registry_of(parse_options(arguments), FeatureGates())
    for name in ("workqueue_depth", "workqueue_adds_total"):
        registry.family(name).child("b").inc()
    assert value_of(registry, "workqueue_depth", name="b") == 1
    assert value_of(registry, "workqueue_adds_total", name="unexpected") == 1


@pytest.mark.parametrize("text", ["[]", "allowListMapping: 3", "allowListMapping: {a: [b]}", "}{"])
def test_manifest_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    manifest = tmp_path / "allowed.yaml"
    manifest.write_text(text)
    with pytest.raises(OptionsError, match="--allow-metric-labels-manifest"):
        registry_of(parse_options([f"--allow-metric-labels-manifest={manifest}"]), FeatureGates())


def test_process_and_build_are_described() -> None:
    registry = MetricsRegistry()
    assert value_of(registry, "kubernetes_build_info", major="1", minor="36") == 1
    assert value_of(registry, "kubernetes_feature_enabled", name="SchedulerQueueingHints", stage="") == 1
    assert value_of(registry, "kubernetes_feature_enabled", name="GangScheduling", stage="ALPHA") == 0
    assert value_of(registry, "process_resident_memory_bytes") > 0
    stable = sum(1 for series in (*SCHEDULER, *CLIENT, *PROCESS) if series.stability == "STABLE")
    assert value_of(registry, "registered_metrics_total", stability_level="STABLE") == stable


def test_every_series_says_how_stable_it_is_and_none_when_it_was_created() -> None:
    registry = MetricsRegistry(EVERY_GATE)
    for series in (*SCHEDULER, *CLIENT, *PROCESS):
        registry.family(series.name).child(*("x" for _ in series.labels))
    text = registry.exposed().decode()
    for series in (*SCHEDULER, *CLIENT, *PROCESS):
        assert f"# HELP {series.name} [{series.stability}] " in text
    assert "_created" not in text
    assert len({series.name for series in (*SCHEDULER, *CLIENT, *PROCESS, *HEALTH)}) == len(
        (*SCHEDULER, *CLIENT, *PROCESS, *HEALTH)
    )


def test_bounds_of_buckets_are_labelled_as_by_go() -> None:
    registry = MetricsRegistry()
    WorkQueueMetrics(registry, "events")
    bounds = {
        "scheduler_preemption_victims": "1 2 4 8 16 32 64 +Inf",
        "workqueue_queue_duration_seconds": "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01"
        " 0.1 1 10 +Inf",
    }
    text = registry.exposed().decode()
    for name, expected in bounds.items():
        lines = (line for line in text.splitlines() if line.startswith(f"{name}_bucket"))
        assert [line.partition('le="')[2].partition('"')[0] for line in lines] == expected.split()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-3.5, "-3.5"), (0.1, "0.1"), (1e-5, "1e-05"), (999_999, "999999"), (1e6, "1e+06"),
     (1_048_576, "1.048576e+06"), (-12_345_678.9, "-1.23456789e+07"), (1e21, "1e+21"),
     (float("inf"), "+Inf"), (float("-inf"), "-Inf"), (float("nan"), "NaN")],
)  # fmt: skip
def test_numbers_are_in_the_words_of_go(value: float, text: str) -> None:
    assert number(value) == text


def test_text_is_sorted_and_leaves_out_what_has_no_sample() -> None:
    registry = MetricsRegistry()
    registry.family("scheduler_pending_pods").child("active").set(1_234_567)
    registry.family("scheduler_plugin_evaluation_total").child("Fit", "Filter", 'a "b" \\ c\nd').inc(2)
    text = registry.exposed().decode()
    assert 'scheduler_pending_pods{queue="active"} 1.234567e+06\n' in text
    label = r'profile="a \"b\" \\ c\nd"'
    assert f'scheduler_plugin_evaluation_total{{extension_point="Filter",plugin="Fit",{label}}} 2\n' in text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert names == sorted(names)
    assert "scheduler_unschedulable_pods" not in text


def test_client_leases_and_queues_are_measured() -> None:
    registry = MetricsRegistry()
    client, lease, queue = (
        ClientMetrics(registry),
        LeaderElectionMetrics(registry, "kube-scheduler"),
        WorkQueueMetrics(registry, "events"),
    )
    client.answered("POST", "api:6443", "201")
    client.answered("GET", "api:6443", "200")
    client.finished("POST", "api:6443", 0.02, 100, 2000)
    client.finished("POST", "api:6443", 60, 100, None)
    client.throttled("POST", "api:6443", 0.5)
    client.retried("GET", "api:6443", "429")
    client.plugin_called(0, "no_error")
    lease.leading(True)
    queue.added(1)
    queue.taken(0, 0.1)
    expected: dict[str, Callable[[], float]] = {
        "requests": lambda: value_of(
            registry, "rest_client_requests_total", code="201", method="POST", host="api:6443"
        ),
        "waits": lambda: value_of(registry, "rest_client_rate_limiter_duration_seconds_sum", verb="POST") * 2,
        "retries": lambda: value_of(registry, "rest_client_request_retries_total", code="429"),
        "plugins": lambda: value_of(registry, "rest_client_exec_plugin_call_total", call_status="no_error"),
        "leads": lambda: value_of(registry, "leader_election_master_status", name="kube-scheduler"),
        "added": lambda: value_of(registry, "workqueue_adds_total", name="events"),
    }
    assert {name: read() for name, read in expected.items()} == dict.fromkeys(expected, 1)
    assert value_of(registry, "workqueue_depth", name="events") == 0
    assert value_of(registry, "rest_client_request_duration_seconds_count") == 2
    assert value_of(registry, "rest_client_request_size_bytes_sum") == 200
    assert value_of(registry, "rest_client_response_size_bytes_sum", verb="POST") == 2000
    assert value_of(registry, "rest_client_response_size_bytes_count") == 1


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

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.daemon.metric_values import value_of

from kubesched.api.release import V1_37
from kubesched.cel.values import show_double
from kubesched.daemon.checks import OptionsError
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.metrics.client import RestClientMetrics, WorkQueueMetrics
from kubesched.daemon.metrics.registry import (
    CLIENT,
    HEALTH,
    PROCESS,
    SCHEDULER,
    MetricsRegistry,
    allow_lists,
    registry_of,
)
from kubesched.daemon.options import parse_options

EVERY_GATE = FeatureGates({"SchedulerAsyncAPICalls": True, "GenericWorkload": True})


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
    text = ""
    for gates in (EVERY_GATE, FeatureGates(release=V1_37)):
        registry = MetricsRegistry(gates)
        for series in (*SCHEDULER, *CLIENT, *PROCESS):
            registry.family(series.name).child(*("x" for _ in series.labels))
        text += registry.exposed().decode()
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
    assert show_double(value) == text


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


def test_client_and_queues_are_measured() -> None:
    registry = MetricsRegistry()
    client, queue = RestClientMetrics(registry), WorkQueueMetrics(registry, "events")
    client.answered("POST", "api:6443", "201", 0.5)
    client.answered("GET", "api:6443", "200")
    client.finished("POST", "api:6443", 0.02, 100, 2000)
    client.finished("POST", "api:6443", 60, 100, None)
    client.retried("GET", "api:6443", "429")
    client.plugin_called(0, "no_error")
    queue.added(1)
    queue.taken(0, 0.1)
    expected: dict[str, Callable[[], float]] = {
        "requests": lambda: value_of(
            registry, "rest_client_requests_total", code="201", method="POST", host="api:6443"
        ),
        "waits": lambda: value_of(registry, "rest_client_rate_limiter_duration_seconds_sum", verb="POST") * 2,
        "retries": lambda: value_of(registry, "rest_client_request_retries_total", code="429"),
        "plugins": lambda: value_of(registry, "rest_client_exec_plugin_call_total", call_status="no_error"),
        "added": lambda: value_of(registry, "workqueue_adds_total", name="events"),
    }
    assert {name: read() for name, read in expected.items()} == dict.fromkeys(expected, 1)
    assert value_of(registry, "workqueue_depth", name="events") == 0
    assert value_of(registry, "rest_client_request_duration_seconds_count") == 2
    assert value_of(registry, "rest_client_request_size_bytes_sum") == 200
    assert value_of(registry, "rest_client_response_size_bytes_sum", verb="POST") == 2000
    assert value_of(registry, "rest_client_response_size_bytes_count") == 1


def test_claims_that_are_created_are_counted_under_the_name_that_the_release_has_for_it() -> None:
    old, new = MetricsRegistry(FeatureGates()), MetricsRegistry(FeatureGates(release=V1_37))
    names = ("scheduler_resourceclaim_creates_total", "dynamic_resource_allocation_resourceclaim_creates_total")
    assert [old.family(name).is_there for name in names] == [True, False]
    assert [new.family(name).is_there for name in names] == [False, True]

"""Every series: name, kind, labels, stability, what it means, and buckets. A row per series of kube-scheduler v1.36."""

from __future__ import annotations

from itertools import accumulate, repeat
from operator import mul
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds that grow by a factor, multiplied one after the other as in Go: the last digits are part of the labels."""
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=start))


_MS = exponential(0.001, 2, 15)
_TENTH_MS = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_LONG = exponential(0.01, 2, 20)
_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_WORK = exponential(1e-8, 10, 10)


class Series(NamedTuple):
    """One metric."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    stability: str
    help: str
    buckets: tuple[float, ...] = ()
    gate: str = ""
    """The feature gate without which it does not exist."""


def _row(
    name: str, kind: Kind, labels: str, stability: str, help: str, buckets: tuple[float, ...] = (), gate: str = ""
) -> Series:
    return Series(name, kind, tuple(labels.split()), stability, help, buckets, gate)


SCHEDULER = (
    _row(
        "scheduler_schedule_attempts_total",
        "counter",
        "result profile",
        "STABLE",
        "Attempts to schedule pods, by result: scheduled, unschedulable (it fits nowhere), error (something broke).",
    ),
    _row(
        "scheduler_scheduling_attempt_duration_seconds",
        "histogram",
        "result profile",
        "STABLE",
        "Seconds that an attempt took, the binding included.",
        _MS,
    ),
    _row(
        "scheduler_scheduling_algorithm_duration_seconds",
        "histogram",
        "",
        "ALPHA",
        "Seconds that it took to find a node, or to find that there is none.",
        _MS,
    ),
    _row(
        "scheduler_event_handling_duration_seconds",
        "histogram",
        "event",
        "ALPHA",
        "Seconds that it took to take notice of an event.",
        _TENTH_MS,
    ),
    _row(
        "scheduler_preemption_victims",
        "histogram",
        "",
        "STABLE",
        "Victims that were chosen, per preemption.",
        exponential(1, 2, 7),
    ),
    _row("scheduler_preemption_attempts_total", "counter", "", "STABLE", "Attempts to make room by preemption."),
    _row(
        "scheduler_pending_pods",
        "gauge",
        "queue",
        "STABLE",
        "Pods that wait, by queue: active, backoff, unschedulable (tried in vain), gated (never tried).",
    ),
    _row(
        "scheduler_inflight_events",
        "gauge",
        "event",
        "ALPHA",
        "Events kept for pods that are being tried.",
        gate="SchedulerQueueingHints",
    ),
    _row("scheduler_goroutines", "gauge", "operation", "BETA", "Tasks under way, by what they do."),
    _row(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "histogram",
        "attempts",
        "BETA",
        "Seconds from the first attempt at a pod to its binding, by the number of attempts.",
        _LONG,
    ),
    _row(
        "scheduler_pod_scheduling_attempts",
        "histogram",
        "",
        "STABLE",
        "Attempts that it took to schedule a pod.",
        exponential(1, 2, 5),
    ),
    _row(
        "scheduler_pod_scheduled_after_flush_total",
        "counter",
        "",
        "ALPHA",
        "Pods that were scheduled only because they were tried again after a long wait: an event may have been missed.",
    ),
    _row(
        "scheduler_framework_extension_point_duration_seconds",
        "histogram",
        "extension_point status profile",
        "STABLE",
        "Seconds that all plugins of an extension point took together.",
        _TENTH_MS,
    ),
    _row(
        "scheduler_plugin_execution_duration_seconds",
        "histogram",
        "plugin extension_point status",
        "ALPHA",
        "Seconds that a plugin took at an extension point, in every tenth attempt.",
        _PLUGIN,
    ),
    _row(
        "scheduler_queueing_hint_execution_duration_seconds",
        "histogram",
        "plugin event hint",
        "ALPHA",
        "Seconds that a plugin took to say whether an event may help a pod.",
        _PLUGIN,
        "SchedulerQueueingHints",
    ),
    _row(
        "scheduler_queue_incoming_pods_total",
        "counter",
        "queue event",
        "STABLE",
        "Pods that came to a queue, by queue and by the event that brought them there.",
    ),
    _row(
        "scheduler_permit_wait_duration_seconds",
        "histogram",
        "result",
        "BETA",
        "Seconds that pods waited for Permit plugins.",
        _MS,
    ),
    _row("scheduler_cache_size", "gauge", "type", "ALPHA", "Nodes, pods and assumed pods that are believed in."),
    _row(
        "scheduler_unschedulable_pods",
        "gauge",
        "plugin profile",
        "BETA",
        "Waiting pods by the plugins that rejected them; a pod counts for each of them.",
    ),
    _row(
        "scheduler_plugin_evaluation_total",
        "counter",
        "plugin extension_point profile",
        "BETA",
        "Attempts in which a plugin was asked, at PreFilter, Filter, PreScore and Score.",
    ),
    _row(
        "scheduler_preemption_goroutines_duration_seconds",
        "histogram",
        "result",
        "ALPHA",
        "Seconds that the eviction of all victims of a pod took.",
        _LONG,
        "SchedulerAsyncPreemption",
    ),
    _row(
        "scheduler_preemption_goroutines_execution_total",
        "counter",
        "result",
        "ALPHA",
        "Pods whose victims were evicted, or were to be.",
        gate="SchedulerAsyncPreemption",
    ),
    _row(
        "scheduler_async_api_call_execution_total",
        "counter",
        "call_type result",
        "ALPHA",
        "Calls to the API server on behalf of pods.",
        gate="SchedulerAsyncAPICalls",
    ),
    _row(
        "scheduler_async_api_call_execution_duration_seconds",
        "histogram",
        "call_type result",
        "ALPHA",
        "Seconds that such calls took.",
        _MS,
        "SchedulerAsyncAPICalls",
    ),
    _row(
        "scheduler_pending_async_api_calls",
        "gauge",
        "call_type",
        "ALPHA",
        "Such calls that are under way.",
        gate="SchedulerAsyncAPICalls",
    ),
    _row(
        "scheduler_volume_scheduling_stage_error_total",
        "counter",
        "operation",
        "ALPHA",
        "Errors with volumes, by stage: predicate (nodes were looked at), bind (volumes were bound).",
    ),
    _row(
        "scheduler_resourceclaim_creates_total",
        "counter",
        "status",
        "ALPHA",
        "ResourceClaims that were to be created.",
        gate="DRAExtendedResource",
    ),
    _row(
        "scheduler_dra_bindingconditions_allocations_total",
        "counter",
        "profile driver status",
        "ALPHA",
        "Allocations of devices that must be made ready first, by driver and attempt.",
        gate="DRADeviceBindingConditions",
    ),
    _row(
        "scheduler_dra_bindingconditions_wait_duration_seconds",
        "histogram",
        "profile driver status",
        "ALPHA",
        "Seconds spent waiting for such devices.",
        exponential(0.1, 2, 14),
        "DRADeviceBindingConditions",
    ),
)

CLIENT = (
    _row(
        "rest_client_requests_total",
        "counter",
        "code method host",
        "ALPHA",
        "HTTP requests by status code, method and host.",
    ),
    _row(
        "rest_client_request_duration_seconds",
        "histogram",
        "verb host",
        "ALPHA",
        "Seconds until a request was answered.",
        _REQUEST,
    ),
    _row(
        "rest_client_rate_limiter_duration_seconds",
        "histogram",
        "verb host",
        "ALPHA",
        "Seconds that requests waited for the client's own limits.",
        _REQUEST,
    ),
    _row("rest_client_request_size_bytes", "histogram", "verb host", "ALPHA", "Bytes of requests.", _BYTES),
    _row("rest_client_response_size_bytes", "histogram", "verb host", "ALPHA", "Bytes of answers.", _BYTES),
    _row("rest_client_request_retries_total", "counter", "code verb host", "ALPHA", "Requests that were tried again."),
    _row("rest_client_exec_plugin_call_total", "counter", "code call_status", "ALPHA", "Calls of credential plugins."),
    _row(
        "leader_election_master_status",
        "gauge",
        "name",
        "ALPHA",
        "1 for whoever holds the lease of this name, 0 for whoever stands by.",
    ),
    _row(
        "leader_election_slowpath_total",
        "counter",
        "name",
        "ALPHA",
        "Renewals that had to read the lease first.",
    ),
    _row("workqueue_adds_total", "counter", "name", "BETA", "Items that came to a queue."),
    _row("workqueue_depth", "gauge", "name", "BETA", "Items in a queue."),
    _row("workqueue_retries_total", "counter", "name", "BETA", "Items that came to a queue again."),
    _row(
        "workqueue_queue_duration_seconds", "histogram", "name", "BETA", "Seconds that items waited in a queue.", _WORK
    ),
    _row(
        "workqueue_work_duration_seconds", "histogram", "name", "BETA", "Seconds that an item took to process.", _WORK
    ),
)

PROCESS = (
    _row(
        "kubernetes_build_info",
        "gauge",
        "major minor git_version git_commit git_tree_state build_date go_version compiler platform",
        "ALPHA",
        "Always 1; the labels say which version this is.",
    ),
    _row(
        "version_info",
        "gauge",
        "component binary emulation min_compat",
        "ALPHA",
        "Always 1; the labels say which versions this is compatible with.",
    ),
    _row("kubernetes_feature_enabled", "gauge", "name stage", "BETA", "Whether a feature gate is on."),
    _row(
        "registered_metrics_total", "counter", "stability_level deprecated_version", "BETA", "Metrics that there are."
    ),
    _row("disabled_metrics_total", "counter", "", "BETA", "Metrics that were switched off."),
    _row("hidden_metrics_total", "counter", "", "BETA", "Metrics that are hidden."),
    _row(
        "cardinality_enforcement_unexpected_categorizations_total",
        "counter",
        "",
        "ALPHA",
        "Label values that were not on the list of allowed ones.",
    ),
)

HEALTH = (
    _row("kubernetes_healthcheck", "gauge", "name type", "STABLE", "1 if the check passed when last made."),
    _row("kubernetes_healthchecks_total", "counter", "name type status", "STABLE", "Checks made, by result."),
)

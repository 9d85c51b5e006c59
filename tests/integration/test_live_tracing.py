"""Traces of a daemon: what an OTLP receiver in this process gets, and what happens when there is none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tests.integration.conftest import StartDaemon
from tests.integration.live_cluster import LiveCluster, wait_until
from tests.otlp_receiver import OtlpReceiver, attributes_of
from tests.unit.extenders.extender_server import ExtenderServer, filtering, passing

from kubesched.daemon.tracing import exporting
from kubesched.daemon.tracing.configuration import TracingConfiguration
from kubesched.daemon.tracing.exporting import Tracing
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome, Done
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.testing import make_pod
from kubesched_sandbox.http import Rule

ALL = 1_000_000
PHASES = ("PreFilter", "Filter", "Score", "Reserve", "Permit", "PreBind", "Bind")
HEADER = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans are sent at once, rather than every five seconds."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    receiver = OtlpReceiver()
    yield receiver
    receiver.stop()


@pytest.fixture
def extender() -> Iterator[ExtenderServer]:
    server = ExtenderServer()
    server.start()
    yield server
    server.stop()


def tracing(directory: Path, endpoint: str, rate: int = ALL) -> tuple[str, str]:
    """The flag that turns tracing on."""
    file = directory / "tracing.yaml"
    file.write_text(f"{HEADER}endpoint: {endpoint}\nsamplingRatePerMillion: {rate}\n")
    return "--tracing-config-file", str(file)


def attempt_at(pod: str, receiver: OtlpReceiver, outcome: str = "bound") -> Span:
    """The first attempt at the pod that ended so, as soon as the receiver has it."""

    def found() -> Span | None:
        spans = receiver.attempts(pod)
        return next((span for span in spans if attributes_of(span)["kubesched.outcome"] == outcome), None)

    span: Span = wait_until(found, f"an attempt at {pod} that is {outcome}")
    return span


def test_attempt_is_a_trace_with_phases_and_the_binding_inside_its_plugin(
    cluster: LiveCluster, start_daemon: StartDaemon, receiver: OtlpReceiver, tmp_path: Path
) -> None:
    cluster.add_node("full", cpu="50m")
    cluster.add_nodes(2)
    cluster.misbehave(Rule("delay", verb="create", resource="pods/binding", seconds=0.05))  # so its plugin has a span
    daemon = start_daemon(cluster, *tracing(tmp_path, receiver.endpoint))
    cluster.add_pod("web")
    root = attempt_at("web", receiver)
    daemon.stop()
    paths = receiver.paths(root)
    assert {(phase,) for phase in PHASES} <= paths.keys()
    assert ("Bind", "Bind/DefaultBinder", "bind Pod") in paths
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano for span in paths.values())
    assert all(span.end_time_unix_nano <= root.end_time_unix_nano for span in paths.values())
    said = attributes_of(root)
    assert (said["k8s.namespace.name"], said["k8s.node.name"]) == ("default", cluster.node_of("web"))
    assert (said["kubesched.nodes.evaluated"], said["kubesched.nodes.feasible"]) == (3, 2)
    assert receiver.resource["service.name"] == "kubesched"
    assert daemon.log_lines("Successfully bound pod", root.trace_id.hex(), root.span_id.hex())


def test_attempt_is_linked_to_the_trace_that_made_the_pod_and_sampled_if_that_is(
    cluster: LiveCluster, start_daemon: StartDaemon, receiver: OtlpReceiver, tmp_path: Path
) -> None:
    daemon = start_daemon(cluster, *tracing(tmp_path, receiver.endpoint, rate=0))
    for name, flags in (("unsampled", "00"), ("sampled", "01")):
        annotations = {"tracing.k8s.io/traceparent": f"00-{TRACE}-{SPAN}-{flags}"}
        cluster.add_pod(name, metadata={"annotations": annotations})
    cluster.add_pod("odd", metadata={"annotations": {"tracing.k8s.io/traceparent": "yesterday"}})
    cluster.add_node("node")
    root = attempt_at("sampled", receiver)
    wait_until(lambda: cluster.all_bound, "all bound")
    daemon.stop()
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in root.links] == [(TRACE, SPAN)]
    assert root.trace_id.hex() != TRACE
    assert not root.parent_span_id
    assert not receiver.attempts("unsampled")
    assert not receiver.attempts("odd")


def test_preemption_has_its_victims_and_their_evictions(
    cluster: LiveCluster, start_daemon: StartDaemon, receiver: OtlpReceiver, tmp_path: Path
) -> None:
    daemon = start_daemon(cluster, *tracing(tmp_path, receiver.endpoint))
    cluster.add_node("node", cpu="2")
    cluster.add_pod("early", cpu="2")
    wait_until(lambda: cluster.node_of("early"), "the pod bound")
    cluster.add_pod("vital", cpu="2", priorityClassName="system-cluster-critical")
    failed = attempt_at("vital", receiver, "unschedulable")
    attempt_at("vital", receiver)
    daemon.stop()
    said = attributes_of(failed)
    assert said["kubesched.victims"] == ["default/early"]
    assert said["kubesched.nominated_node"] == "node"
    assert "Insufficient cpu" in said["kubesched.message"]
    paths = receiver.paths(failed)
    assert ("PostFilter",) in paths
    assert attributes_of(paths["Eviction", "evict Pod"])["kubesched.object"] == "Pod default/early"
    assert ("patch_pod_status Pod",) in paths


def test_extenders_are_in_the_trace_of_their_pod(
    cluster: LiveCluster, start_daemon: StartDaemon, receiver: OtlpReceiver, extender: ExtenderServer, tmp_path: Path
) -> None:
    extender.answers["filter"] = passing("node")
    config = {"extenders": [filtering(extender)]}
    cluster.add_node("node")
    cluster.add_node("other")
    daemon = start_daemon(cluster, *tracing(tmp_path, receiver.endpoint), config=config)
    cluster.add_pod("one")
    cluster.add_pod("two")
    roots = [attempt_at("one", receiver), attempt_at("two", receiver)]
    daemon.stop()
    for root in roots:
        asked = receiver.paths(root)["filter Extender",]
        assert attributes_of(asked)["kubesched.extender"] == extender.url


def test_failed_binding_is_an_error_with_its_cause(
    cluster: LiveCluster, start_daemon: StartDaemon, receiver: OtlpReceiver, tmp_path: Path
) -> None:
    cluster.misbehave(Rule("409", verb="create", resource="pods/binding", count=1))
    daemon = start_daemon(cluster, *tracing(tmp_path, receiver.endpoint))
    cluster.add_node("node")
    cluster.add_pod("web")
    failed = attempt_at("web", receiver, "bind-error")
    daemon.stop()
    assert failed.status.code == Status.STATUS_CODE_ERROR
    assert "DefaultBinder" in failed.status.message
    [bind] = [span for path, span in receiver.paths(failed).items() if path[-1] == "bind Pod"]
    assert bind.status.code == Status.STATUS_CODE_ERROR


def test_without_a_receiver_pods_are_bound_and_lost_spans_counted(
    cluster: LiveCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    nobody = OtlpReceiver()
    nobody.stop()
    flags = (*tracing(tmp_path, nobody.endpoint), "--authorization-always-allow-paths", "/metrics")
    daemon = start_daemon(cluster, *flags)
    cluster.add_nodes(2)
    cluster.add_pods(20)
    wait_until(lambda: cluster.all_bound, "all bound")
    wait_until(lambda: daemon.metric("kubesched_lost_spans_total", why="failed") >= 20, "lost spans")
    assert daemon.stop() == 0


def test_attempts_lose_their_spans_whole_while_too_many_wait(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")  # so that none is sent before the end
    monkeypatch.setattr(exporting, "STOP_WITHIN", 120)
    tracing = Tracing(TracingConfiguration(endpoint=receiver.endpoint, sampling_rate_per_million=ALL))
    monkeypatch.setattr(exporting, "MOST_WAITING", 5)
    for i in range(8):
        attempt = Attempt(QueuedPod(make_pod(f"pod-{i}").build(), 0.0), "Active")
        tracing.listener.popped(attempt)
        attempt.state = Done(AttemptOutcome.SKIPPED)
        tracing.listener.decided(attempt)
    assert not tracing.listener.under_way
    assert tracing.dropped == 3
    asyncio.run(tracing.stop())
    assert len(receiver.spans) == 5


def imported(log: str) -> list[str]:
    """The packages of OpenTelemetry and below that a process imported, by what Python says of it."""
    names = re.findall(r"^import time: .*\| +(\S+)$", log, re.MULTILINE)
    assert "kubesched.daemon.replica" in names
    return [name for name in names if name.partition(".")[0] in ("opentelemetry", "grpc", "google")]


@pytest.mark.parametrize("is_on", [False, True])
def test_nothing_is_imported_while_it_is_off(
    is_on: bool, cluster: LiveCluster, start_daemon: StartDaemon, receiver: OtlpReceiver, tmp_path: Path
) -> None:
    flags: Any = tracing(tmp_path, receiver.endpoint) if is_on else ()
    daemon = start_daemon(cluster, *flags, environ={"PYTHONPROFILEIMPORTTIME": "1"})
    cluster.add_node("node")
    cluster.add_pod("web")
    wait_until(lambda: cluster.all_bound, "the pod bound")
    assert daemon.stop() == 0
    assert bool(imported(daemon.log)) == is_on
    assert ("trace_id" in daemon.log) == is_on

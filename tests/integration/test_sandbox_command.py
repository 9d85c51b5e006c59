"""`kubesched sandbox` as somebody without a terminal runs it, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.live_cluster import wait_until
from tests.otlp_receiver import OtlpReceiver, attributes_of

COMMAND = [sys.executable, "-m", "kubesched", "sandbox"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)


def run_until(done: Callable[[list[str]], bool], *arguments: str) -> list[str]:
    """The lines of a sandbox that is interrupted as soon as `done` holds of those it has printed."""
    told: list[str] = []
    with subprocess.Popen([*COMMAND, *arguments, "--for", "120"], stdout=subprocess.PIPE, text=True, bufsize=1) as box:
        assert box.stdout is not None
        for line in box.stdout:
            told.append(line)
            if done(told):
                break
        box.send_signal(signal.SIGINT)
        told.extend(box.stdout)
        assert box.wait(120) == 0
    return told


def test_story_is_told_and_ends_with_a_summary() -> None:
    result = run("--scenario", "shop", "--for", "1", "--seed", "1")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("An API server with 9 nodes at http://127.0.0.1:")
    head, _, story = result.stdout.partition("The shop opens")
    assert "\nWeb page: http://127.0.0.1:" in head
    assert head.count("\n  kube") == 3  # commands to try next
    assert story
    assert "Scheduler: " in result.stdout


def test_summary_counts_what_the_scheduler_did() -> None:
    bound = lambda told: sum("s  bound " in line for line in told) == 9  # noqa: E731
    told = run_until(bound, "--scenario", "shop", "--seed", "1")
    assert "Scheduler: 9 bound, 0 unschedulable" in "".join(told)


def test_kubeconfig_is_written_where_it_was_asked_for_and_the_sandbox_ends_on_a_signal(tmp_path: Path) -> None:
    file = tmp_path / "box" / "kubeconfig"
    with subprocess.Popen([*COMMAND, "--nodes", "2", "--kubeconfig", str(file), "--token", "secret", "--tls"]) as box:
        deadline = time.monotonic() + 120
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        document = yaml.safe_load(file.read_text())
        box.send_signal(signal.SIGTERM)
        assert box.wait(120) == 0
    assert document["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert document["users"][0]["user"] == {"token": "secret"}
    assert os.stat(file).st_mode & 0o077 == 0


def test_without_the_scheduler_inside_pods_wait_for_one_from_outside() -> None:
    def nine_pods_are_there(told: list[str]) -> bool:
        address = told[0].rpartition(" at ")[2].strip()
        while pods_at(address) < 9:
            time.sleep(0.05)
        return True

    told = run_until(nine_pods_are_there, "--scenario", "shop", "--no-scheduler")
    assert "9 pending.  Scheduler: 0 bound" in "".join(told)


def pods_at(address: str) -> int:
    with urllib.request.urlopen(f"{address}/api/v1/pods", timeout=120) as answer:
        return len(json.load(answer)["items"])


def test_with_pod_groups_a_job_of_all_or_nothing_makes_a_group(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with subprocess.Popen([*COMMAND, "--nodes", "2", "--pod-groups", "--no-ui", "--kubeconfig", str(file)]) as box:
        deadline = time.monotonic() + 120
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        server = yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"]
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train"}]}
        gang: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
        spec = {"parallelism": 2, "completions": 2, "template": {"spec": pod}, "scheduling": gang}
        job = json.dumps({"metadata": {"name": "train"}, "spec": spec}).encode()
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(
            urllib.request.Request(f"{server}/apis/batch/v1/namespaces/default/jobs", job, headers), timeout=60
        ).close()
        groups: list[Any] = []
        while not groups and time.monotonic() < deadline:
            with urllib.request.urlopen(f"{server}/apis/scheduling.k8s.io/v1beta1/podgroups", timeout=60) as answer:
                groups = json.load(answer)["items"]
        box.send_signal(signal.SIGTERM)
        assert box.wait(120) == 0
    assert [group["spec"]["schedulingPolicy"] for group in groups] == [{"gang": {"minCount": 2}}]


def test_objects_outlive_the_process_in_a_data_directory(tmp_path: Path) -> None:
    for _ in range(2):
        assert run("--nodes", "3", "--for", "0.5", "--data-dir", str(tmp_path)).returncode == 0
    result = run("--nodes", "0", "--for", "1.5", "--data-dir", str(tmp_path))
    assert "node-2" in result.stdout


def test_token_that_kubectl_would_not_send_is_warned_of() -> None:
    result = run("--nodes", "0", "--for", "0.1", "--token", "secret")
    assert result.returncode == 0
    assert result.stderr.startswith("--token without --tls: kubectl sends no token over plain http")
    assert run("--nodes", "0", "--for", "0.1", "--token", "secret", "--tls").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "will not listen on 0.0.0.0"),
        (["--fault", "418"], "--fault 418: '418' is no fault; there are "),
        (["--node-file", "/nowhere.yaml"], "/nowhere.yaml: No such file"),
        (["--config", "/nowhere.yaml"], "/nowhere.yaml: No such file"),
    ],
)
def test_mistake_is_told_in_a_line(arguments: list[str], words: str) -> None:
    result = run("--for", "1", *arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_node_file_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("kind: Node\nmetadata: {name: a}\n---\nkind: Pod\n")
    result = run("--node-file", str(file), "--for", "1")
    assert (result.returncode, result.stderr) == (2, f"{file}: document 2: expected a Node\n")


def test_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("--port", str(taken.getsockname()[1]), "--for", "1")
    assert result.returncode == 2
    assert "address already in use" in result.stderr
    assert "Traceback" not in result.stderr


def test_every_attempt_is_traced_to_an_otlp_receiver_and_a_group_is_linked_with_its_pods(tmp_path: Path) -> None:
    receiver = OtlpReceiver()
    file = tmp_path / "kubeconfig"
    flags = ("--nodes", "2", "--pod-groups", "--no-ui", "--kubeconfig", str(file), "--otlp", receiver.endpoint)
    with subprocess.Popen([*COMMAND, *flags]) as box:
        wait_until(file.exists, "the kubeconfig")
        server = yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"]
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train"}]}
        spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": {"spec": pod}}
        job = json.dumps({"metadata": {"name": "train"}, "spec": spec}).encode()
        path, headers = f"{server}/apis/batch/v1/namespaces/default/jobs", {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(path, job, headers), timeout=60).close()

        def ended(name: str, outcome: str) -> list[Any]:
            """The spans of that name and outcome: a first attempt may come before all nodes are there."""
            roots = [span for span in list(receiver.spans) if span.name == name]
            return [span for span in roots if attributes_of(span)["kubesched.outcome"] == outcome]

        wait_until(lambda: len(ended("SchedulePod", "bound")) == 2, "both pods bound")
        wait_until(lambda: ended("SchedulePodGroup", "scheduled"), "their group scheduled")
        box.send_signal(signal.SIGTERM)
        assert box.wait(120) == 0
    receiver.stop()
    [group], bound = ended("SchedulePodGroup", "scheduled"), ended("SchedulePod", "bound")
    assert {link.span_id for link in group.links} == {span.span_id for span in bound}
    assert [[link.span_id for link in span.links] for span in bound] == [[group.span_id]] * 2
    # A sandbox may bind within the time below which a plugin has no span of its own.
    binding = [[path for path in receiver.paths(span) if path[-1] == "bind Pod"] for span in bound]
    assert [[path[0] for path in paths] for paths in binding] == [["Bind"], ["Bind"]]

"""`--feature-gates` means the same to every command that schedules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}}\n"
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p},"
    " spec: {resources: {requests: {cpu: 3}}, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}\n"
)
TWO_PODS = f"{NODE}---\n{POD}---\n{POD.replace('name: p}', 'name: q}')}"
OLDER = ("--release", "1.36")
"""The last release in which the gate can be off."""
WITHOUT_POD_LEVEL = (*OLDER, "--feature-gates", "PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false")
EMPTY_CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*arguments: str, stdin: str = "") -> Result:
    result = CliRunner().invoke(main, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_place_counts_as_the_gates_say() -> None:
    command = "place", "-f", "-", "-o", "json"
    assert len(json.loads(run(*command, stdin=TWO_PODS).stdout)["placed"]) == 1
    assert len(json.loads(run(*command, *WITHOUT_POD_LEVEL, stdin=TWO_PODS).stdout)["placed"]) == 2


def test_simulate_counts_as_the_gates_say() -> None:
    command = "simulate", "-f", "-"
    assert run(*command, stdin=TWO_PODS).stdout.startswith("2 pods on 1 node: 1 placed")
    assert run(*command, *WITHOUT_POD_LEVEL, stdin=TWO_PODS).stdout.startswith("2 pods on 1 node: 2 placed")


def test_explain_knows_what_the_gates_say() -> None:
    large = f"{NODE}---\n{POD.replace('cpu: 3', 'cpu: 5')}"
    assert "Insufficient cpu" in run("explain", "-f", "-", "--pod", "p", stdin=large).stdout
    assert "It goes to n1" in run("explain", "-f", "-", "--pod", "p", *WITHOUT_POD_LEVEL, stdin=large).stdout


def test_capacity_counts_as_the_gates_say(tmp_path: Path) -> None:
    cluster, pod = tmp_path / "cluster.yaml", tmp_path / "pod.yaml"
    cluster.write_text(NODE)
    pod.write_text(POD)
    command = "capacity", "-f", str(cluster), "--pod", str(pod)
    assert run(*command).stdout.startswith("1 more of")
    assert run(*command, *WITHOUT_POD_LEVEL).stdout.startswith("4 more of")


def test_compare_counts_as_the_gates_say(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(EMPTY_CONFIG)
    command = "compare", "-f", "-", "--config", str(config), "-o", "json"
    for gates, placed in (((), 1), (WITHOUT_POD_LEVEL, 2)):
        found = json.loads(run(*command, *gates, stdin=TWO_PODS).stdout)
        assert [figures["placed"] for figures in found["figures"]] == [placed, placed]


def test_config_has_the_defaults_that_go_with_the_gates() -> None:
    command = "config", "defaults"
    assert "filterTimeout: 10s" in run(*command).stdout
    assert "filterTimeout" not in run(*command, "--feature-gates", "DRASchedulerFilterTimeout=false").stdout


def test_config_check_refuses_what_a_gate_that_is_off_would_allow() -> None:
    shape = "{name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}"
    config = f"{EMPTY_CONFIG}profiles: [{{pluginConfig: [{shape}]}}]\n"
    assert run("config", "check", "-", stdin=config).exit_code == 0
    assert run("config", "check", "-", "--feature-gates", "StorageCapacityScoring=false", stdin=config).exit_code == 2


def test_a_recording_is_replayed_under_the_gates_it_was_made_under(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    run("simulate", "-f", "-", "--record", str(recording), *WITHOUT_POD_LEVEL, stdin=TWO_PODS)
    assert run("replay", str(recording)).exit_code == 0
    header, *rest = recording.read_text().splitlines()
    under_defaults = {**json.loads(header), "featureGates": {}}
    recording.write_text("\n".join([json.dumps(under_defaults), *rest]))
    assert run("replay", str(recording)).exit_code == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("Nonsense=true", "unrecognized feature gate: Nonsense"),
        ("PodLevelResources", "missing bool value for PodLevelResources"),
        (
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            "PodLevelResources=false",
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
            "[PodLevelResources]",
        ),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "-f", "-"),
        ("place", "-f", "-"),
        ("explain", "-f", "-", "--pod", "p"),
        ("capacity", "-f", "-", "--pod", "-"),
        ("compare", "-f", "-", "--config", "-"),
        ("sandbox", "--for", "0"),
        ("config", "check", "-"),
        ("config", "defaults"),
    ],
    ids=" ".join,
)
def test_gates_that_cannot_be_set_are_refused_as_by_run(command: tuple[str, ...], given: str, complaint: str) -> None:
    result = run(*command, *OLDER, "--feature-gates", given, stdin=TWO_PODS)
    assert (result.exit_code, result.stderr) == (2, f"--feature-gates: {complaint}\n")


def test_gates_without_effect_are_remarked_upon() -> None:
    result = run("place", "-f", "-", "--feature-gates", "DRAListTypeAttributes=true", stdin=TWO_PODS)
    remark = "feature gates that kube-scheduler follows, but kubesched does not: DRAListTypeAttributes\n"
    assert (result.exit_code, result.stderr) == (0, remark)

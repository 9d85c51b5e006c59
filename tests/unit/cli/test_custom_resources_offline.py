"""A plugin of an installed package waits for Racks: every offline command finds those of the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.installed_plugin import install_plugin

from kubesched.cli.main import main

PLUGIN = """
from kubesched.api.custom import custom_kind
from kubesched.framework.events import Action, ClusterEvent, Interest
from kubesched.framework.plugin import PreFilterPlugin
from kubesched.framework.status import unschedulable

RACKS = "racks.v1.example.com"


class NeedsRack(PreFilterPlugin):
    name = "NeedsRack"

    def events_to_register(self):
        return (Interest(ClusterEvent(RACKS, Action.ADD)),)

    def pre_filter(self, cycle):
        return None if cycle.state.objects.all(custom_kind(RACKS)) else unschedulable("no rack yet")
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: NeedsRack}]}}
"""
CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 2}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main}]}}
"""
RACK = "---\n{apiVersion: example.com/v1, kind: Rack, metadata: {name: first}}\n"
OTHER = "---\n{apiVersion: example.com/v1, kind: Shelf, metadata: {name: first}}\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A configuration that enables the plugin, which is installed."""
    install_plugin(tmp_path, monkeypatch, PLUGIN, name="NeedsRack")
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    return str(file)


def run(*arguments: str, manifests: str) -> Result:
    result = CliRunner().invoke(main, arguments, input=manifests)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_simulate_waits_for_a_rack_and_finds_it(config: str) -> None:
    found = run("simulate", "-f", "-", "--config", config, "-o", "json", manifests=CLUSTER + OTHER)
    assert json.loads(found.stdout)["pods"][0]["message"].startswith("0/1 nodes are available: no rack yet.")
    found = run("simulate", "-f", "-", "--config", config, "-o", "json", manifests=CLUSTER + RACK + OTHER)
    assert json.loads(found.stdout)["pods"][0]["node"] == "n1"
    assert json.loads(found.stdout)["skipped"] == {"Shelf": 1}


def test_compare_reads_what_any_of_the_policies_waits_for(config: str) -> None:
    found = json.loads(run("compare", "-f", "-", "--config", config, "-o", "json", manifests=CLUSTER).stdout)
    assert [figures["placed"] for figures in found["figures"]] == [1, 0]
    found = json.loads(run("compare", "-f", "-", "--config", config, "-o", "json", manifests=CLUSTER + RACK).stdout)
    assert [figures["placed"] for figures in found["figures"]] == [1, 1]
    assert found["skipped"] == {}


def test_capacity_counts_what_fits_once_there_is_a_rack(config: str, tmp_path: Path) -> None:
    node, pod = CLUSTER.split("---")
    (tmp_path / "pod.yaml").write_text(pod)
    arguments = ("capacity", "-f", "-", "--pod", str(tmp_path / "pod.yaml"), "--config", config, "-o", "json")
    assert json.loads(run(*arguments, manifests=node).stdout)["fit"] == 0
    assert json.loads(run(*arguments, manifests=node + RACK).stdout)["fit"] == 2


def test_place_and_explain_find_the_rack(config: str) -> None:
    found = run("place", "-f", "-", "--config", config, "-o", "json", manifests=CLUSTER + RACK)
    assert [placed["node"] for placed in json.loads(found.stdout)["placed"]] == ["n1"]
    found = run("explain", "-f", "-", "--config", config, "--pod", "web", manifests=CLUSTER)
    assert "no rack yet" in found.stdout


def test_recording_with_a_rack_is_replayed(config: str, tmp_path: Path) -> None:
    recording = str(tmp_path / "recording.jsonl")
    run("simulate", "-f", "-", "--config", config, "--record", recording, manifests=CLUSTER + RACK)
    assert "1 decision replayed, all the same" in run("replay", recording, manifests="").stdout

"""A plugin of an installed package, enabled by the configuration, counts in every command."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kubesched.cli.main import main

PLUGIN = """
from kubesched.framework.plugin import ScorePlugin


class LastNode(ScorePlugin):
    name = "LastNode"

    def score_node(self, cycle, node):
        return 100 if node.name == "node-2" else 0
"""
BROKEN = PLUGIN.replace('100 if node.name == "node-2" else 0', 'node.labels["zone"]')
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "LastNode", "weight": 100}]}}}],
}
CLUSTER = [
    *(
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"node-{i}"}, "status": {"allocatable": {"pods": 10}}}
        for i in range(3)
    ),
    {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration and a cluster, and the package on the path."""
    (tmp_path / "last_node.py").write_text(PLUGIN)
    info = tmp_path / "last_node-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: last-node\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kubesched.plugins]\nlast-node = last_node:LastNode\n")
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(CLUSTER))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "last_node", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(command: str, *, code: int = 0) -> str:
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.usefixtures("folder")
def test_its_scores_decide_where_pods_go() -> None:
    assert "node-2" in told("place -f cluster.yaml --config scheduler.yaml")
    assert "It goes to node-2" in told("explain --pod web -f cluster.yaml --config scheduler.yaml")


@pytest.mark.usefixtures("folder")
def test_a_recording_is_replayed_with_it() -> None:
    told("simulate -f cluster.yaml --config scheduler.yaml --record day.jsonl")
    assert "1 decision replayed, all the same" in told("replay day.jsonl")


@pytest.mark.usefixtures("folder")
def test_the_sandbox_schedules_with_it() -> None:
    assert "0 pods" in told("sandbox --nodes 3 --config scheduler.yaml --for 0.2")


def test_attempts_that_it_breaks_are_counted_by_the_sandbox(folder: Path) -> None:
    (folder / "last_node.py").write_text(BROKEN)
    story = told("sandbox --scenario shop --for 1.5 --seed 1 --config scheduler.yaml")
    assert "plugin \"LastNode\" broke: KeyError: 'zone'" in story
    assert re.search(
        r"0 bound, 0 unschedulable attempts, 0 preempted, 0 evicted, [1-9]\d* errors\.", " ".join(story.split())
    )


def test_one_that_breaks_ends_the_question_with_its_name(folder: Path) -> None:
    (folder / "last_node.py").write_text(BROKEN)
    for command in ("place", "explain --pod web"):
        output = told(f"{command} -f cluster.yaml --config scheduler.yaml", code=1)
        assert output.splitlines()[-1] == "plugin \"LastNode\" broke: KeyError: 'zone'"

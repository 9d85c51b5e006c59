"""Explaining pod groups: how many pods fit where, what the next one lacks, and nodes with which the group runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.scheduler.group_world import ALL_GATES, ALPHA, make_gang, members

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.api.well_known import ZONE
from kubesched.ask.explain import explain
from kubesched.ask.explain.pod_groups import GroupExplanation, GroupPlacement, PodGroupPoolHelp
from kubesched.ask.targets import UnknownTargetError, find_pod
from kubesched.cli.main import main
from kubesched.config.features import Features
from kubesched.framework.advice import MissingResource
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

GATES = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"


def asked(*objects: NodeBuilder | PodBuilder | KubeObject, features: Features = ALL_GATES) -> ClusterModel:
    built = [obj if isinstance(obj, KubeObject) else obj.build() for obj in objects]
    return ClusterModel.with_missing_pods(built, config.default(features))


def group_in(cluster: ClusterModel, target: str = "podgroup/g") -> GroupExplanation:
    found = explain(cluster, find_pod(cluster, target)).findings.pod_group
    assert found is not None
    return found


def zoned(name: str, zone: str, cpu: int) -> NodeBuilder:
    return make_node(name).capacity(cpu=str(cpu)).label({ZONE: zone, "pool": "gpu"})


def test_gang_that_does_not_fit_is_told_by_how_much() -> None:
    cluster = asked(zoned("n0", "a", 3), make_gang("g", 4), *members("g", 4))
    found = group_in(cluster)
    assert (found.outcome, found.needed, found.waiting, found.running) == ("unschedulable", 4, 4, 0)
    assert found.placements == (
        GroupPlacement("", 1, 3, "default/g-3", "n0 lacks 1 cpu", (MissingResource("cpu", "1"),)),
    )
    assert "minCount (4) cannot be satisfied: 3 scheduled" in found.message
    assert found.pools == (PodGroupPoolHelp("gpu", (), 1),)


def test_each_domain_is_told_the_best_first_and_new_nodes_are_counted_where_they_are_fewest() -> None:
    cluster = asked(
        zoned("a0", "a", 1),
        zoned("b0", "b", 2),
        zoned("b1", "b", 2),
        make_gang("g", 8, topology=ZONE),
        *members("g", 8),
    )
    found = group_in(cluster)
    assert [(each.name, each.nodes, each.fits, each.first_without) for each in found.placements] == [
        ("b", 2, 4, "default/g-4"),
        ("a", 1, 1, "default/g-1"),
    ]
    assert found.placements[1].why == "a0 lacks 1 cpu"
    assert [each.lacking for each in found.placements] == [
        (MissingResource("cpu", "4"),),
        (MissingResource("cpu", "7"),),
    ]
    assert found.pools == (PodGroupPoolHelp("gpu", ("b",), 2),)


def test_room_that_is_there_in_pieces_is_not_told_as_a_lack_of_the_whole() -> None:
    small = [zoned(f"n{i}", "a", 1) for i in range(4)]
    cluster = asked(*small, make_gang("g", 2), *(pod.requests(cpu="2") for pod in members("g", 2)))
    [placement] = group_in(cluster).placements
    assert (placement.fits, placement.why, placement.lacking) == (0, "n0 lacks 1 cpu", ())


def test_nothing_of_it_stays_in_the_cluster() -> None:
    cluster = asked(zoned("n0", "a", 3), make_gang("g", 4), *members("g", 4))
    group_in(cluster)
    state = cluster.state
    assert state.nodes.live_count == 1
    assert not state.pods.pods_on(state.nodes.row_of["n0"])
    assert len(state.groups.pending("default/g")) == 4


def test_group_for_which_room_is_made_names_the_victims() -> None:
    low = make_pod("low").requests(cpu="2").on("n0")
    cluster = asked(zoned("n0", "a", 2), low, make_gang("g", 2, api=ALPHA, priority=10), *members("g", 2))
    assert group_in(cluster).would_evict == ("default/low",)


def test_group_that_fits_and_one_that_is_held_back() -> None:
    cluster = asked(zoned("n0", "a", 3), make_gang("g", 2), *members("g", 2), make_gang("few", 3), *members("few", 2))
    assert (group_in(cluster).outcome, group_in(cluster).message) == ("scheduled", "")
    few = group_in(cluster, "podgroup/few")
    assert few.outcome == "gated"
    assert "waiting for minCount pods" in few.message
    assert few.pools == ()


def test_group_without_its_gate_is_refused_and_its_pods_are_as_any() -> None:
    cluster = asked(zoned("n0", "a", 3), make_gang("g", 4), *members("g", 4), features=Features())
    assert explain(cluster, find_pod(cluster, "g-0")).findings.pod_group is None
    with pytest.raises(UnknownTargetError, match="GenericWorkload"):
        find_pod(cluster, "podgroup/g")


def test_unknown_group_and_group_without_pods() -> None:
    cluster = asked(zoned("n0", "a", 3), make_gang("train", 4))
    with pytest.raises(UnknownTargetError, match="there is no PodGroup default/trains; did you mean default/train"):
        find_pod(cluster, "podgroup/trains")
    with pytest.raises(UnknownTargetError, match="no pod names it"):
        find_pod(cluster, "podgroup/train")


MANIFESTS = """
apiVersion: v1
kind: Node
metadata: {name: n0, labels: {pool: gpu}}
status: {capacity: {cpu: 2, memory: 8Gi, pods: 110}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: train}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
"""
WORKER = """---
apiVersion: v1
kind: Pod
metadata: {name: train-%d}
spec:
  schedulingGroup: {podGroupName: train}
  containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]
"""


def test_page_and_document_tell_of_the_group(tmp_path: Path) -> None:
    file = tmp_path / "train.yaml"
    file.write_text(MANIFESTS + "".join(WORKER % i for i in range(3)))
    result = CliRunner().invoke(main, ["explain", "-f", str(file), GATES, "podgroup/train"])
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "podgroup default/train 2 of 3 waiting pods fit; it needs 3 The group waits as a whole:" in text
    assert "all nodes 1 2 1 cpu default/train-2 n0 lacks 1 cpu" in text
    assert "- 1 more node of pool gpu." in text
    document = json.loads(
        CliRunner().invoke(main, ["explain", "-f", str(file), GATES, "podgroup/train", "-o", "json"]).stdout
    )
    assert document["podGroup"]["placements"][0]["fits"] == 2

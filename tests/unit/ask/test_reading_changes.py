"""Changes as they are written on a command line, and what is said of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.api.errors import UserError
from kubesched.api.pod import Pod
from kubesched.ask.edits import (
    AddNodes,
    AddNodesFromTemplate,
    ScaleWorkload,
    read_added,
    read_applied,
    read_nodes,
    read_scale,
)
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.simulate.kinds import Deployment, StatefulSet
from kubesched.simulate.manifests import loads


def test_nodes_are_written_one_by_one_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text("node-1\n# the old ones\n\nzone=a  # all of it\n")
    assert read_nodes("node-7") == ("node-7",)
    assert read_nodes(f"@{file}") == ("node-1", "zone=a")


def test_added_nodes_are_like_another_or_from_a_template(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("{apiVersion: v1, kind: Node, metadata: {name: big}, status: {capacity: {cpu: 64}}}")
    assert read_added("3:like=node-7") == AddNodes("node-7", 3)
    added = read_added(f"2:file={file}")
    assert isinstance(added, AddNodesFromTemplate)
    assert added.template.status.allocatable["cpu"] in (64, "64")
    assert str(added) == "add 2 nodes like the template big"


def test_workloads_to_scale_are_named_as_kubectl_does() -> None:
    assert read_scale("deployment/web=10", "shop") == ScaleWorkload(Deployment, "web", 10, "shop")
    assert read_scale("db/sts/postgres=3", "shop") == ScaleWorkload(StatefulSet, "postgres", 3, "db")


@pytest.mark.parametrize("text", ["web=3", "pod/web=3", "deployment/web", "deployment/web=-1", "a/b/deploy/web=1"])
def test_a_scale_that_cannot_be_read_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(UserError, match="TYPE/NAME=REPLICAS, with a deployment") as caught:
        read_scale(text)
    assert caught.value.lines[0].startswith(f"--scale {text}: ")


@pytest.mark.parametrize("text", ["3", "0:like=n", "x:like=n", "3:like=", "3:as=n", "99999:like=n"])
def test_an_addition_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected COUNT:like=NODE or COUNT:file=FILE"):
        read_added(text)


def test_files_that_are_not_there_or_have_something_else_are_refused(tmp_path: Path) -> None:
    empty, pod = tmp_path / "empty.txt", tmp_path / "pod.yaml"
    empty.write_text("# nothing\n")
    pod.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}")
    for read, text, said in (
        (read_nodes, "@nowhere.txt", "nowhere.txt: No such file or directory"),
        (read_nodes, f"@{empty}", f"{empty}: expected a node or KEY=VALUE in each line, got nothing"),
        (read_added, f"1:file={pod}", f"{pod}: expected one Node as a template, got 0"),
    ):
        with pytest.raises(UserError) as caught:
            read(text)
        assert caught.value.lines == [said]


CLUSTER = """
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: vip}, value: 7}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}, spec: {nodeName: node-1, containers: [{name: c}]}}
"""


def test_applied_objects_know_the_classes_of_the_cluster_and_replace_those_of_the_same_name(tmp_path: Path) -> None:
    file, cluster = tmp_path / "pod.yaml", loads(CLUSTER).objects
    file.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop},"
        " spec: {priorityClassName: vip, containers: [{name: c}]}}\n---\n"
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: vip}, value: 9}"
    )
    after = apply_hypothetical(cluster, [read_applied(str(file), cluster)])
    assert [(obj.spec.node_name, obj.priority) for obj in after if isinstance(obj, Pod)] == [("", 9)]
    assert len(after) == len(cluster)


def test_a_workload_that_is_applied_again_makes_its_pods_anew(tmp_path: Path) -> None:
    template = "{metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: %s}]}}"
    deployment = (
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}},"
        f" template: {template}}}}}"
    )
    owner = "ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, controller: true}]"
    cluster = loads(
        "\n---\n".join(
            (
                deployment % "old",
                "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, %s}}"
                % (owner % ("Deployment", "web")),
                "{apiVersion: v1, kind: Pod, metadata: {name: web-1-a, %s}, spec: {containers: [{name: c}]}}"
                % (owner % ("ReplicaSet", "web-1")),
                "{apiVersion: v1, kind: Pod, metadata: {name: other}, spec: {containers: [{name: c}]}}",
            )
        ),
        workloads=True,
    ).objects
    file = tmp_path / "web.yaml"
    file.write_text(deployment % "new")
    after = apply_hypothetical(cluster, [read_applied(str(file), cluster)])
    assert sorted(obj.name for obj in after) == ["default", "other", "web"]

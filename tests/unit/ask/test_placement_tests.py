"""Placement tests: what may be expected, what is said when it does not hold, and of cases that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from kubesched import config
from kubesched.api.errors import UserError
from kubesched.ask.output import API_VERSION
from kubesched.ask.placement_tests.case import KIND, read_cases
from kubesched.ask.placement_tests.checks import Check
from kubesched.ask.placement_tests.running import first_case, junit, results, run_case

POOLS = [
    {"name": "web", "count": 4, "zones": ["a", "b"], "capacity": {"cpu": 4}},
    {"name": "spot", "zones": ["a"], "taints": [{"key": "spot", "effect": "NoSchedule"}]},
]


def pod(name: str, *, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name.partition("-")[0]}},
        "spec": {"containers": [container], **spec},
    }


def case(*expect: dict[str, Any], objects: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "it"},
        "cluster": {"nodes": POOLS},
        "objects": objects,
        "expect": list(expect),
        **more,
    }


def ran(tmp_path: Path, document: dict[str, Any]) -> list[Check]:
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump(document))
    [found] = read_cases([str(file)])
    return list(run_case(found, config.default()).checks)


def check(tmp_path: Path, expected: dict[str, Any], *objects: dict[str, Any], **more: Any) -> Check:
    [found] = ran(tmp_path, case({"pods": {"app": "web"}, **expected}, objects=list(objects), **more))
    return found


WEB = [pod("web-1", nodeSelector={"topology.kubernetes.io/zone": "a"}), pod("web-2")]
LOW = [pod(f"low-{i}", cpu="4", priority=-1, nodeName=f"web-{i}") for i in (1, 2, 3, 4)]
ONE_ZONE = [pod(f"web-{i}", nodeSelector={"topology.kubernetes.io/zone": "a"}) for i in range(3)]
TIGHT = [pod(f"web-{i}", cpu="3") for i in range(4)]


@pytest.mark.parametrize(
    ("expected", "objects"),
    [
        ({"landOn": {"pool": "web"}}, WEB),
        ({"neverOn": {"pool": "spot"}}, WEB),
        ({"spreadOver": {"topologyKey": "zone", "maxSkew": 1, "minDomains": 2}}, TIGHT),
        ({"atMost": {"pods": 1, "per": "node"}}, TIGHT),
        ({"pending": "Insufficient cpu"}, [pod("web-1", cpu="5")]),
        ({"pending": True}, [pod("web-1", cpu="5")]),
        ({"pending": False}, WEB),
        ({"preemptsOnly": {"app": "low"}}, [*LOW, pod("web-1")]),
        ({"preemptsOnly": {}}, WEB),
        ({"fits": 16}, WEB[1:]),
        ({"survivesLossOf": "zone"}, [pod(f"web-{i}") for i in range(8)]),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)
def test_what_is_so_holds(tmp_path: Path, expected: dict[str, Any], objects: list[dict[str, Any]]) -> None:
    found = check(tmp_path, expected, *objects)
    assert found == Check(found.expected, holds=True)


@pytest.mark.parametrize(
    ("expected", "objects", "said"),
    [
        ({"landOn": {"pool": "spot"}}, WEB, "which has pool=web"),
        ({"landOn": {"pool": "web"}}, [pod("web-1", cpu="5")], "default/web-1 is pending: 0/5 nodes are available"),
        ({"neverOn": {"zone": "a"}}, WEB[:1], "default/web-1 is on web-"),
        ({"spreadOver": {"topologyKey": "zone", "maxSkew": 1}}, ONE_ZONE, "the skew is 3: a 3, b 0"),
        ({"spreadOver": {"topologyKey": "zone", "minDomains": 2}}, WEB[:1], "they are in 1: a 1, b 0"),
        ({"atMost": {"pods": 2, "per": "zone"}}, [pod(f"web-{i}") for i in range(5)], " has 3"),
        ({"pending": True}, WEB[:1], "default/web-1 is on web-"),
        ({"pending": "taint"}, [pod("web-1", cpu="5", tolerations=[{"operator": "Exists"}])], "for another reason"),
        ({"pending": False}, [pod("web-1", cpu="5")], "default/web-1 is pending: 0/5"),
        (
            {"preemptsOnly": {"app": "batch"}},
            [*LOW, pod("web-1")],
            "default/web-1 evicts default/low-",
        ),
        (
            {"preemptsOnly": {}},
            [*LOW, pod("web-1")],
            "default/web-1 evicts default/low-",
        ),
        ({"fits": 17}, WEB[1:], "16 fit; what stops the next one: 0/5 nodes are available: 1 node(s) had untolerated"),
        ({"survivesLossOf": "zone"}, TIGHT, "without zone a, default/web-"),
        ({"survivesLossOf": "rack"}, WEB, "no node has a rack"),
    ],
)
def test_what_is_not_so_is_told(
    tmp_path: Path, expected: dict[str, Any], objects: list[dict[str, Any]], said: str
) -> None:
    found = check(tmp_path, expected, *objects)
    assert not found.holds
    assert said in found.problems[0]


def test_the_decision_about_a_pod_that_is_elsewhere_is_explained(tmp_path: Path) -> None:
    found = check(tmp_path, {"landOn": {"pool": "spot"}}, pod("web-1"))
    assert found.explanation[0] == "the decision about default/web-1:"
    assert "  1 node (spot): TaintToleration: node(s) had untolerated taint(s)" in found.explanation
    assert any("score" in line for line in found.explanation)


def test_an_expectation_about_nobody_does_not_hold(tmp_path: Path) -> None:
    found = check(tmp_path, {"neverOn": {"pool": "spot"}, "namespace": "elsewhere"}, pod("web-1"))
    assert found.problems == ("no pod is meant",)


def test_changes_are_made_before_pods_are_placed(tmp_path: Path) -> None:
    found = check(tmp_path, {"landOn": {"zone": "b"}}, *WEB[1:], changes={"drain": ["zone=a"]})
    assert found.holds


def test_files_are_found_beside_the_case(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(pod("web-1", schedulerName="mine")))
    profiles = {"profiles": [{"schedulerName": "mine"}]}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(head | profiles))
    document = case({"pending": False}, objects=[], manifests=["../web.yaml"], config="../scheduler.yaml")
    assert [check.holds for check in ran(tmp_path / "deep", document)] == [True]


# -- cases that cannot be read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cluster": {"node": []}}, 'cluster.node: unknown field; did you mean "nodes"?'),
        ({"cluster": {}}, "cluster: expected files, nodes or both"),
        ({"expect": []}, "expect: expected at least one expectation"),
        ({"expect": [{"pods": {"app": "web"}}]}, "expect[0]: expected one of landOn, neverOn, spreadOver, atMost"),
        ({"expect": [{"fits": 0}]}, "expect[0].fits: expected an integer from 1 to 100000, got 0"),
        ({"expect": [{"spreadOver": {"topologyKey": "zone"}}]}, "expect[0].spreadOver: expected maxSkew, minDomains"),
        ({"kind": "Test"}, 'kind: expected "PlacementTest", got "Test"'),
        ({"metadata": None}, "metadata: required field is missing"),
    ],
)
def test_a_mistake_is_told_with_file_and_field(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        ran(tmp_path, case({"fits": 1}, objects=WEB) | change)
    assert caught.value.lines[0].startswith(f"{tmp_path / 'case.yaml'}: document 1: {said}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cluster": {"files": ["nowhere.yaml"]}}, "nowhere.yaml: No such file or directory"),
        ({"cluster": {"nodes": [POOLS[1], POOLS[1]]}}, "cluster.nodes: there is a node spot already"),
        (
            {"cluster": {"nodes": [{"name": "node", "capacity": {"cpu": "much"}}]}},
            "cluster.nodes: document 1, items[0]",
        ),
        ({"objects": [{"apiVersion": "v1", "kind": "Pod", "spec": {}}]}, "objects: document 1, items[0] (Pod)"),
        ({"changes": {"drain": ["zone=z"]}}, "--drain zone=z: no node has the label"),
        ({"config": "nowhere.yaml"}, "config: "),
    ],
)
def test_what_a_case_names_and_is_not_there_is_told_with_the_case(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError) as caught:
        ran(tmp_path, case({"fits": 1}, objects=WEB) | change)
    assert caught.value.lines[0].startswith(f"{tmp_path / 'case.yaml'}: document 1 (PlacementTest it): ")
    assert said in caught.value.lines[0]


def test_a_directory_without_cases_is_refused(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(pod("web-1")))
    with pytest.raises(UserError, match="no document of kind PlacementTest in this directory"):
        read_cases([str(tmp_path)])


# -- results -----------------------------------------------------------------------------------------------------------


def test_junit_has_a_suite_per_case_and_a_test_per_check(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    expect = {"pods": {"app": "web"}, "landOn": {"pool": "spot"}, "pending": False}
    file.write_text(yaml.safe_dump(case(expect, objects=[pod("web-1")])))
    [found] = read_cases([str(file)])
    result = run_case(found, config.default())
    root = ElementTree.fromstring(junit(results((result,)), {(str(file), "it"): 1.5}))
    assert (root.get("tests"), root.get("failures"), root.get("time")) == ("2", "1", "1.500")
    [suite] = root
    failures = {test.get("name"): test.find("failure") for test in suite}
    assert failures["pods with app=web are all placed"] is None
    failure = failures["pods with app=web land on nodes with pool=spot"]
    assert failure is not None
    assert "the decision about default/web-1:" in (failure.text or "")


def test_a_first_case_says_what_is_true_and_holds(tmp_path: Path) -> None:
    cluster, file = tmp_path / "cluster.yaml", tmp_path / "tests" / "first.yaml"
    zones = "abc"
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "labels": {"pool": "web", "topology.kubernetes.io/zone": zones[i]}},
            "status": {"capacity": {"cpu": 4, "memory": "8Gi", "pods": 10}},
        }
        for i in range(3)
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}
    pods = [pod(f"web-{i}", nodeName=f"n{i}") for i in range(3)]
    for i, each in enumerate(pods):
        each["metadata"]["ownerReferences"] = [owner]
        each["metadata"]["labels"] |= {"pod-template-hash": "1", "number": str(i)}
    cluster.write_text(yaml.safe_dump_all([*nodes, *pods]))
    file.parent.mkdir()
    file.write_text(first_case(str(file), str(cluster), config.default()))
    [expect] = yaml.safe_load(file.read_text())["expect"]
    assert expect["pods"] == {"app": "web"}
    assert expect["landOn"] == {"pool": "web"}
    assert expect["spreadOver"] == {"topologyKey": "zone", "minDomains": 3}
    assert expect["survivesLossOf"] == "zone"
    [found] = read_cases([str(file)])
    assert run_case(found, config.default()).holds

"""`kubesched test`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.testing import Placement, make_node, make_pod
from kubesched.testing import check_placement_tests as check_all

EXAMPLES = Path(__file__).parents[3] / "examples" / "placement"
WRONG = f"""
apiVersion: kubesched.dev/v1alpha1
kind: PlacementTest
metadata: {{name: web on spot}}
cluster: {{files: [{EXAMPLES / "cluster.yaml"}]}}
manifests: [{EXAMPLES / "web.yaml"}]
expect:
- {{pods: {{app: web}}, landOn: {{pool: spot}}}}
"""


NODE_OF_REGION = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4, pods: 9}}}\n"
POD_WITH_REGION = """---
apiVersion: v1
kind: Pod
metadata:
  name: web-%d
  labels: {app: web, topology.kubernetes.io/region: eu-1}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: w, controller: true}]
spec: {nodeName: n1, containers: [{name: c%d, resources: {requests: {cpu: 1}}}]}
"""


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["test", *arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    return str(file)


def test_all_cases_of_a_directory_are_run() -> None:
    text = run(str(EXAMPLES / "tests")).stdout
    assert [line.split()[0] for line in text.splitlines()[:-1]] == ["PASS"] * 3
    assert text.endswith("3 cases: 3 passed, 0 failed\n")


def test_what_does_not_hold_is_explained_and_ends_with_1(wrong: str) -> None:
    lines = [" ".join(line.split()) for line in run(wrong, code=1).stdout.splitlines()]
    assert lines[0] == f"FAIL web on spot {wrong}"
    assert lines[1] == "expected: pods with app=web land on nodes with pool=spot"
    assert any(line.endswith("which has pool=service") for line in lines)
    assert "3 nodes (gpu-a, spot-a, spot-b): TaintToleration: node(s) had untolerated taint(s)" in lines
    assert lines[-1] == "1 case: 0 passed, 1 failed"


def test_results_are_written_for_ci_and_for_programs(wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "out" / "junit.xml"
    result = run(wrong, str(EXAMPLES / "tests"), "--junit", str(file), "-o", "json", code=1)
    root = ElementTree.fromstring(file.read_text())
    assert (root.tag, root.get("failures"), len(root)) == ("testsuites", "1", 4)
    found = json.loads(result.stdout)
    assert (found["kind"], found["passed"], found["failed"]) == ("TestResults", 3, 1)


def test_a_case_that_cannot_be_read_ends_with_2(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(WRONG.replace("landOn", "landsOn"))
    result = run(str(file), code=2)
    assert result.stderr == f'{file}: document 1: expect[0].landsOn: unknown field; did you mean "landOn"?\n'
    assert run("nowhere.yaml", code=2).stderr == "nowhere.yaml: No such file or directory\n"


def test_a_first_case_is_written_once_and_holds(tmp_path: Path) -> None:
    file = str(tmp_path / "tests" / "first.yaml")
    result = run("--init", str(EXAMPLES.parent / "shop"), file)
    assert result.stderr == f"{file}: written; `kubesched test {file}` runs it\n"
    assert yaml.safe_load(Path(file).read_text())["expect"]
    assert "1 passed, 0 failed" in run(file).stdout
    assert "there is such a file already" in run("--init", str(EXAMPLES), file, code=2).stderr


def test_first_case_does_not_choose_pods_by_where_they_are(tmp_path: Path) -> None:
    """The API server gives bound pods the zone and the region of their nodes as labels."""
    pods = "".join(POD_WITH_REGION % (i, i) for i in range(2))
    cluster, file = tmp_path / "cluster.yaml", tmp_path / "first.yaml"
    cluster.write_text(NODE_OF_REGION + pods)
    run("--init", str(cluster), str(file))
    assert yaml.safe_load(file.read_text())["expect"][0]["pods"] == {"app": "web"}


# -- for pytest --------------------------------------------------------------------------------------------------------


def test_a_placement_is_a_cluster_with_everything_scheduled() -> None:
    nodes = [make_node(f"n{i}").zone(zone).label(pool="web") for i, zone in enumerate("abc")]
    web = [make_pod(f"web-{i}").label(app="web").requests(cpu="1") for i in range(3)]
    low = make_pod("low").requests(cpu="4").priority(-1).on("n0")
    placement = Placement(nodes, [*web, low])
    pods = placement.pods(app="web")
    pods.are_placed()
    pods.land_on(pool="web")
    pods.never_on(pool="spot")
    pods.at_most(3, per="zone")
    pods.preempt_only()
    pods.fit(8)
    pods.survive_loss_of("zone")
    assert placement.nodes["default/low"] == "n0"


def test_what_does_not_hold_is_an_assertion_error_that_explains() -> None:
    placement = Placement([make_node("n0").taint("spot")], [make_pod("web").label(app="web")])
    placement.pods(app="web").are_pending("untolerated taint")
    with pytest.raises(AssertionError, match="expected: pods with app=web are all placed") as caught:
        placement.pods(app="web").are_placed()
    assert "1 node (n0): TaintToleration: node(s) had untolerated taint(s)" in str(caught.value)
    with pytest.raises(AssertionError, match="they are in 0"):
        placement.pods(app="web").spread_over("node", min_domains=1)


def test_manifests_are_put_on_files() -> None:
    placement = Placement(files=[EXAMPLES / "cluster.yaml"], manifests=[EXAMPLES / "web.yaml"])
    placement.pods(app="web", namespace="shop").spread_over("zone")


def test_cases_can_be_run_by_pytest(wrong: str) -> None:
    check_all(EXAMPLES / "tests")
    with pytest.raises(AssertionError, match="land on nodes with pool=spot"):
        check_all(wrong)


def test_fixtures_are_found_by_their_names(make_placement: type[Placement], request: pytest.FixtureRequest) -> None:
    assert make_placement is Placement
    assert request.getfixturevalue("check_placement_tests") is check_all

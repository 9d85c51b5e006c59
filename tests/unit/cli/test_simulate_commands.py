from __future__ import annotations

import json
import re
from pathlib import Path
from xml.dom import minidom

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched import __version__
from kubesched.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
SHOP, NIGHTLY = str(EXAMPLES / "shop"), str(EXAMPLES / "nightly.yaml")
NODE = (
    "---\n{apiVersion: v1, kind: Node, metadata: {name: n%d, labels: {topology.kubernetes.io/zone: z%d}},"
    " status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}}\n"
)
JOB = (
    "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: sums}, spec: {parallelism: %d, completions: %d, template:"
    " {metadata: {annotations: {kubesched.io/duration: 1m}},"
    " spec: {containers: [{resources: {requests: {cpu: 1}}}]}}}}\n"
)
TRACE = NODE % (0, 0) + NODE % (1, 1) + JOB % (10, 12)
MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
"""


def run(*arguments: str, stdin: str = "") -> Result:
    result = CliRunner().invoke(main, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_example_is_simulated_to_the_end() -> None:
    text = run("simulate", "-f", SHOP).stdout
    assert text.startswith("6 pods on 12 nodes: 4 placed, 2 pending, 2 evicted\n")
    assert "batch/report-1, batch/report-2" in text
    assert re.search(r"zone-a +4 +█+", text)
    assert max(map(len, text.splitlines())) <= 120


def test_a_trace_shows_its_times() -> None:
    text = run("simulate", "-f", "-", stdin=TRACE).stdout
    assert "12 pods on 2 nodes, 2m0s of virtual time: 12 placed, 0 pending, 12 finished" in " ".join(text.split())
    assert "Requested on average over 2m0s" in text


def test_many_pods_are_cut_short_unless_all_are_wanted() -> None:
    trace = "".join(NODE % (i, 0) for i in range(30)) + JOB % (60, 60)
    brief = run("simulate", "-f", "-", stdin=trace).stdout
    assert "... and 20 more (--all-pods shows them)" in brief
    assert "10 more in between (--all-nodes shows them)" in brief
    full = run("simulate", "-f", "-", "--all-pods", "--all-nodes", stdin=trace).stdout
    assert "more (" not in full


def test_a_trace_with_arrivals_is_told_in_every_format() -> None:
    as_json = json.loads(run("simulate", "-f", NIGHTLY, "-o", "json").stdout)
    assert as_json == yaml.safe_load(run("simulate", "-f", NIGHTLY, "-o", "yaml").stdout)
    assert {30.0, 60.0} <= {story["arrived"] for story in as_json["pods"]}
    assert "</html>" in run("simulate", "-f", NIGHTLY, "-o", "html").stdout


def test_json_and_yaml_say_the_same() -> None:
    as_json = json.loads(run("simulate", "-f", "-", "-o", "json", stdin=TRACE).stdout)
    assert as_json == yaml.safe_load(run("simulate", "-f", "-", "-o", "yaml", stdin=TRACE).stdout)
    assert as_json["summary"]["placed"] == 12
    assert {node["name"] for node in as_json["byNode"]} == {"n0", "n1"}


@pytest.mark.parametrize("source", [SHOP, "-"])
def test_html_is_one_page_with_plots_and_nothing_from_elsewhere(source: str) -> None:
    text = run("simulate", "-f", source, "-o", "html", stdin=TRACE).stdout
    plots = re.findall(r"(?s)<svg.*?</svg>", text)
    assert len(plots) >= 2
    for plot in plots:
        minidom.parseString(plot)
    assert not re.search(r"https?:|<script[^>]|<link|@import|url\(", text)
    assert text.count("<script>") == 1  # the search


def test_html_says_what_made_it_and_who_was_evicted() -> None:
    text = run("simulate", "-f", NIGHTLY, "-o", "html").stdout
    assert "with the configuration default, seed 0, on 20" in text
    assert f"<footer>kubesched {__version__}</footer>" in text
    assert "evicted so far" in text
    assert '<td class="bad">evicted after' in text


def test_html_has_every_pod_and_names_the_reasons_of_those_that_wait() -> None:
    large = (
        "---\n{apiVersion: v1, kind: Pod, metadata: {name: large},"
        " spec: {containers: [{resources: {requests: {cpu: 9}}}]}}\n"
    )
    text = run("simulate", "-f", "-", "-o", "html", stdin=NODE % (0, 0) + JOB % (4, 250) + large).stdout
    assert text.count("<td>default/sums-") == 250
    assert "Insufficient cpu" in re.findall(r"(?s)<svg.*?</svg>", text)[-1]


def test_capacity_counts_copies_and_says_what_stops_the_next(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{resources: {requests: {cpu: 3}}}]}}"
    )
    text = run("capacity", "-f", "-", "--pod", str(pod), stdin=NODE % (0, 0) + NODE % (1, 1)).stdout
    assert text.startswith("2 more of default/p fit on 2 nodes\n")
    assert "0/2 nodes are available: 2 Insufficient cpu." in text
    found = json.loads(run("capacity", "-f", SHOP, "--pod", str(pod), "-o", "json").stdout)
    assert sum(found["byNode"].values()) == found["fit"]


def test_capacity_takes_the_template_of_a_workload_and_stops_at_most(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB % (1, 1))
    text = run("capacity", "-f", "-", "--pod", str(job), "--most", "3", stdin=NODE % (0, 0)).stdout
    assert text.startswith("3 more of default/sums fit on 1 node or more")


def test_capacity_wants_exactly_one_pod(tmp_path: Path) -> None:
    file = tmp_path / "nothing.yaml"
    file.write_text(NODE % (7, 7))
    result = run("capacity", "-f", "-", "--pod", str(file), stdin=NODE % (0, 0))
    assert result.exit_code == 2
    assert result.stderr == f"{file}: expected one pod, or one workload with a pod template, got 0\n"


def test_compare_shows_where_pods_end_up_under_each_policy(tmp_path: Path) -> None:
    policy = tmp_path / "packed.yaml"
    policy.write_text(MOST_ALLOCATED)
    trace = NODE % (0, 0) + NODE % (1, 1) + JOB % (3, 3)
    text = run("compare", "-f", "-", "--config", str(policy), stdin=trace).stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "default packed.yaml"
    assert "Nodes used 2 1" in lines
    assert "Pods placed 3 3" in lines
    found = json.loads(run("compare", "-f", "-", "--config", str(policy), "-o", "json", stdin=trace).stdout)
    assert [figures["nodesUsed"] for figures in found["figures"]] == [2, 1]


@pytest.mark.parametrize("command", [("simulate",), ("compare",), ("capacity", "--pod", "-")])
def test_bad_input_is_named_and_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(MOST_ALLOCATED)
    bad = "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {kubesched.io/arrival: soon}}}"
    result = run(*command, "--config", str(policy), "-f", "-", stdin=bad)
    assert result.exit_code == 2
    assert "<stdin>: document 1 (Pod default/p): metadata.annotations.kubesched.io/arrival: expected" in result.stderr


def test_missing_configuration_is_refused() -> None:
    result = run("simulate", "-f", SHOP, "--config", "nowhere.yaml")
    assert (result.exit_code, result.stderr) == (2, "nowhere.yaml: No such file or directory\n")


def test_nodes_are_drained_before_the_start_where_that_is_asked_for() -> None:
    result = run("simulate", "-f", SHOP, "--drain", "topology.kubernetes.io/zone=zone-a", "-o", "json")
    report = json.loads(result.stdout)
    assert {story["pod"]: story.get("node") for story in report["pods"]}["shop/recommender-1"] == "gpu-b1"
    assert not any(story.get("node", "").endswith("-a1") for story in report["pods"])


def test_node_to_drain_that_does_not_exist_is_refused() -> None:
    result = run("simulate", "-f", SHOP, "--drain", "web-z1", "--drain", "web-a1")
    assert (result.exit_code, result.stderr) == (
        2,
        "--drain web-z1: there is no such node; did you mean web-c1?\n",
    )


def test_manifests_without_nodes_are_remarked_upon() -> None:
    result = run("simulate", "-f", "-", stdin=JOB % (1, 1))
    assert result.stderr.startswith("There are no nodes in the manifests")
    assert result.exit_code == 0

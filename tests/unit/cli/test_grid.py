"""Tables at every width, with names as long as Kubernetes allows: nothing is cut, nothing is padded."""

from __future__ import annotations

import io
import re
import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from kubesched.ask.output import agreeing, counted, share
from kubesched.cli.grid import Grid
from kubesched.cli.main import main
from kubesched.cli.printing import bar

WIDTHS = (60, 80, 120)
NODES = [f"ip-10-0-5-{i}.eu-west-1.compute.internal.production-cluster-blue-{i:02}" for i in range(3)]
LONG = "recommendation-service-canary-for-the-personalization-of-offers"
NAMESPACE = "personalization-and-recommendations-in-production-eu-west-1-aa"

FILE = "-f long.yaml"
CASE = f"""
apiVersion: kubesched.dev/v1alpha1
kind: PlacementTest
metadata: {{name: all on one node}}
cluster: {{files: [long.yaml]}}
expect:
- {{pods: {{app: r}}, namespace: {NAMESPACE}, landOn: {{kubernetes.io/hostname: {NODES[0]}}}}}
"""

letters = st.sampled_from(string.ascii_lowercase + string.digits + "-")
names = st.text(letters, min_size=1, max_size=63)
numbers = st.integers(0, 10**9).map(str)
sentences = st.lists(st.text(letters, min_size=1, max_size=14), min_size=1, max_size=30).map(" ".join)


def printed(grid: Grid, width: int) -> str:
    out = Console(file=io.StringIO(), width=width, force_terminal=False)
    grid.print(out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@given(st.lists(st.tuples(names, numbers, names, sentences), min_size=1, max_size=6), st.integers(20, 160))
def test_every_name_number_and_heading_is_printed_whole(rows: list[tuple[str, ...]], width: int) -> None:
    grid = Grid(("Pod", "Priority", "Node", "Why it waits"), right=(1,))
    for row in rows:
        grid.add(*row)
    shown = printed(grid, width)
    words = shown.split()
    assert set(words) >= {word for row in rows for cell in row for word in cell.split()}
    assert all(heading in shown.replace(":", "").split() for heading in ("Pod", "Priority", "Node"))
    assert all(line == line.rstrip() for line in shown.splitlines())
    longest = max(len(word) for word in words if "─" not in word)
    assert max(map(len, shown.splitlines())) <= max(width, longest + len("  Priority: "))


@given(st.lists(st.tuples(names, numbers), min_size=1, max_size=6), st.integers(20, 160))
def test_columns_are_aligned_where_there_is_a_table(rows: list[tuple[str, str]], width: int) -> None:
    grid = Grid(("Node", "Copies"), right=(1,))
    for row in rows:
        grid.add(*row)
    lines = printed(grid, width).splitlines()
    if lines[0].split() == ["Node", "Copies"]:
        assert len({len(line) for line in lines}) == 1


def test_styles_stay_with_their_words_when_a_cell_is_wrapped() -> None:
    grid = Grid(("Pod", "Why"))
    grid.add("web", Text.assemble("no room on any of the nodes here ", ("but preemption would help", "green")))
    lines = list(grid.lines(30))
    green = " ".join(
        line.plain[span.start : span.end] for line in lines for span in line.spans if span.style == "green"
    )
    assert green.split() == ["but", "preemption", "would", "help"]


def test_records_stand_below_each_other_where_a_table_has_no_room() -> None:
    grid = Grid(("Moves", "From", "To"))
    grid.add(LONG, NODES[0], NODES[1])
    assert printed(grid, 80).splitlines() == ["Moves", "─" * 80, LONG, f"  From: {NODES[0]}", f"  To: {NODES[1]}"]


# -- the commands -----------------------------------------------------------------------------------------------------


def _manifests(cpu: str = "1500m") -> str:
    nodes: list[Any] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"topology.kubernetes.io/zone": f"eu-west-1-local-zone-{i}", "pool": "blue"},
            },
            "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        for i, name in enumerate(NODES)
    ]
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "r"}}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": LONG, "namespace": NAMESPACE},
        "spec": {"replicas": 7, "selector": {"matchLabels": {"app": "r"}}, "template": template},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": template["spec"]}
    Path("pod.yaml").write_text(yaml.safe_dump(pod))
    return yaml.safe_dump_all([*nodes, deployment])


COMMANDS = (
    f"place {FILE} --all-pods",
    f"simulate {FILE} --all-pods",
    f"what-if {FILE} --lose {NODES[0]}",
    f"what-if {FILE} --drain {NODES[1]} --scale {NAMESPACE}/deployment/{LONG}=9 --add 1:like={NODES[0]}",
    f"what-if {FILE} --upgrade pool=blue",
    "compare -f long.yaml --config config.yaml",
    f"capacity {FILE} --pod pod.yaml",
    f"explain {FILE} -n {NAMESPACE} deployment/{LONG} --nodes",
    f"explain {FILE}",
    f"check drain {NODES[0]} {FILE}",
    f"check upgrade pool=blue {FILE}",
    f"plan free --nodes 1 {FILE}",
    f"plan queue {FILE}",
    "test case.yaml",
)
CONFIG = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- pluginConfig:\n"
    "  - name: NodeResourcesFit\n"
    "    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 9}]}}\n"
    "  plugins: {score: {disabled: [{name: PodTopologySpread}, {name: NodeResourcesBalancedAllocation}]}}\n"
)


@pytest.mark.parametrize("columns", [*WIDTHS, None], ids=str)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.split()[:2]))
def test_no_command_cuts_names_or_pads_lines(
    command: str, columns: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("long.yaml").write_text(_manifests("400m" if command.startswith("compare") else "1500m"))
    Path("config.yaml").write_text(CONFIG)
    Path("case.yaml").write_text(CASE)
    environment = {"COLUMNS": str(columns)} if columns else {}
    result = CliRunner().invoke(main, command.split(), env=environment)
    assert result.exit_code in (0, 1), result.output
    begun = set(re.findall(r"(?<![\w-])(?:ip-10|recomm|personaliz)[\w.-]*", result.stdout))
    assert begun, "such a name is somewhere"
    assert {name for name in begun if not name.startswith((*NODES, LONG, NAMESPACE))} == set(), "cut or broken"
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


def test_a_score_is_the_same_at_every_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("long.yaml").write_text(_manifests())
    reports = [
        CliRunner().invoke(main, ["place", "-f", "long.yaml"], env={"COLUMNS": str(width)}).stdout for width in WIDTHS
    ]
    scores = [[word for word in report.split() if word.isdigit() and len(word) == 3] for report in reports]
    assert scores[0] == scores[1] == scores[2] != []


# -- English that counts right ----------------------------------------------------------------------------------------


def test_nouns_and_verbs_agree_with_their_numbers() -> None:
    assert share(1, 1, "node", "fit") == "1 of 1 node fits"
    assert share(1, 9, "node", "fit") == "1 of 9 nodes fits"
    assert share(0, 9, "node", "fit") == "0 of 9 nodes fit"
    assert f"{counted(1, 'pod')} {agreeing(1, 'are')}" == "1 pod is"
    assert f"{counted(2, 'pod')} {agreeing(2, 'have')}" == "2 pods have"


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(0.5, 8).plain.split() == ["████····", "50%"]
    assert bar(0.01, 0).plain == "1%"

"""`-o html` of explain, compare, place and capacity: one page each that loads nothing and runs nothing."""

from __future__ import annotations

import re
from pathlib import Path
from xml.dom import minidom

import pytest
from click.testing import CliRunner

from kubesched import __version__
from kubesched.cli.main import main

SHOP = str(Path(__file__).parents[3] / "examples" / "shop")
NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: n%d}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}}\n---\n"
)
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{resources: {requests: {cpu: %s}}}]}}\n---\n"
)
MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def page(*arguments: str, stdin: str = "") -> str:
    result = CliRunner().invoke(main, [*arguments, "-o", "html"], input=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def titles(text: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", text)


@pytest.fixture
def most_allocated(tmp_path: Path) -> str:
    file = tmp_path / "packing.yaml"
    file.write_text(MOST_ALLOCATED)
    return str(file)


def test_every_page_needs_nothing_else_and_says_what_made_it(most_allocated: str) -> None:
    pages = [
        page("explain", "-f", SHOP),
        page("explain", "-f", SHOP, "shop/search-indexer"),
        page("compare", "-f", SHOP, "--config", most_allocated),
        page("place", "-f", SHOP),
        page("capacity", "-f", SHOP, "--pod", "-", stdin=POD % ("one", 1)),
    ]
    for text in pages:
        assert not re.search(r"https?:|<script[^>]|<link|@import|url\(", text)
        assert f"<footer>kubesched {__version__}</footer>" in text
        assert re.search(r"on 20\d\d-\d\d-\d\d \d\d:\d\d UTC", text)
        for plot in re.findall(r"(?s)<svg.*?</svg>", text):
            minidom.parseString(plot)


def test_a_pod_that_waits_is_told_with_what_would_help_and_every_node() -> None:
    text = page("explain", "-f", SHOP, "shop/search-indexer")
    assert "<h1>Explained: shop/search-indexer, 0 of 12 nodes fit</h1>" in text
    assert {"What would help", "Nearest misses", "Preemption would evict 2 pods from spot-a1"} <= set(titles(text))
    assert "<li>spot-c1 lacks 7 cpu</li>" in text
    every_node = text[text.index("<h2>Every node</h2>") :]
    assert every_node.count("<td>no</td>") == 12


def test_a_pod_that_fits_has_a_bar_for_every_part_of_its_scores_and_a_row_for_every_node() -> None:
    text = page("explain", "-f", "-", "pod/next", stdin="".join(NODE % i for i in range(40)) + POD % ("next", 1))
    scores = text[text.index("<h2>Scores</h2>") : text.index("<h2>Every node</h2>")]
    assert scores.count("</tr>") == 41
    assert "chosen" in scores
    assert len(re.findall(r"<rect class=\"fill", scores)) >= 25


def test_several_pods_are_on_one_page_each_under_its_name() -> None:
    text = page("explain", "-f", SHOP, "shop/search-indexer", "shop/checkout-canary")
    assert "<h1>Explained: 2 pods</h1>" in text
    assert {"shop/search-indexer: Outcome", "shop/checkout-canary: Outcome"} <= set(titles(text))


def test_pending_pods_are_told_by_cause() -> None:
    text = page("explain", "-f", SHOP)
    assert "<h1>6 pending pods on 12 nodes</h1>" in text
    assert "1 pod: Insufficient nvidia.com/gpu" in titles(text)
    assert "<li>1 more node of pool gpu would place it.</li>" in text
    assert "Would find a node now" in titles(text)


def test_policies_are_side_by_side_with_the_pods_that_go_elsewhere(most_allocated: str) -> None:
    text = page("compare", "-f", SHOP, "--config", most_allocated)
    assert "<h1>Compared: default, packing.yaml</h1>" in text
    assert "<td>batch/report-6</td><td>spot-a1</td>" in text
    same = page("compare", "-f", SHOP, "--config", most_allocated, "--config", most_allocated)
    assert "None: all 6 are treated alike." in same

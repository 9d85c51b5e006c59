"""Answers in words for agents: what a plan reaches, and what an upgrade changes, by cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubesched import Cluster, make_node, make_pod
from kubesched.mcp.words import in_words

PLANNING = Path(__file__).parents[3] / "examples" / "planning"
SHOP = Path(__file__).parents[3] / "examples" / "shop"
PRICES = PLANNING / "prices.csv"


@pytest.mark.parametrize(
    ("files", "asked", "said"),
    [
        (
            ["cluster.yaml"],
            {"goal": "free", "nodes": 2, "pool": "large"},
            ["Free 2 nodes of pool large: found.", "2 nodes freed, 4 moves in 2 waves (free then: ", "- wave 1: "],
        ),
        (
            ["cluster.yaml"],
            {"goal": "free", "nodes": 3, "pool": "gpu"},
            ["impossible: however pods are moved, at most 2 can be emptied"],
        ),
        (
            ["cluster.yaml", "training.yaml"],
            {"goal": "pool", "prices": PRICES},
            ["2 nodes added, 2 pending pods placed.", "19.6 per hour", "An hour costs 0 before, 19.6 after."],
        ),
        (
            ["cluster.yaml"],
            {"goal": "consolidate", "prices": PRICES, "save": 20},
            ["Save 20% of what nodes cost: found.", "no plan does better than", "An hour costs "],
        ),
        (
            ["cluster.yaml", "queue.yaml"],
            {"goal": "queue"},
            ["Place the queue: found.", "4 pending pods placed.", "- default/"],
        ),
    ],
)
def test_a_plan_needs_no_second_call(files: list[str], asked: dict[str, Any], said: list[str]) -> None:
    words = in_words(Cluster.from_files(*(PLANNING / file for file in files)).plan(**asked).to_dict())
    assert [text for text in said if text not in words] == [], words


def test_an_upgrade_is_told_by_what_causes_the_change() -> None:
    words = in_words(Cluster.from_files(SHOP).compare_releases("1.36", "1.37").to_dict())
    assert words.startswith("From Kubernetes 1.36 to 1.37: 6 pending pods, 15 placed.\n")
    assert "other message: a pod that makes room says where" in words
    assert "(https://github.com/kubernetes/kubernetes/pull/140180)" in words
    assert "Changed fields: profiles[default-scheduler]" in words


def test_an_upgrade_that_changes_nothing_for_pods_says_so() -> None:
    cluster = Cluster(nodes=[make_node("n1")], pods=[make_pod("p")])
    assert "No pod is treated otherwise." in in_words(cluster.compare_releases().to_dict())

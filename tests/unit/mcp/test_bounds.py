"""Answers for agents have a bounded size, and say what was left out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.mcp.bounds import LARGEST, limit_size


def test_a_short_answer_is_left_alone() -> None:
    document = {"kind": "Fit", "placed": [{"pod": "a"}]}
    assert limit_size(document) == document


@pytest.mark.parametrize("nodes", [100, 5_000])
def test_a_long_answer_is_cut_and_says_how_much_is_gone(nodes: int) -> None:
    names = [f"node-{i}-of-a-cluster" for i in range(nodes)]
    document: dict[str, Any] = {
        "kind": "X",
        "groups": [{"nodes": names}, {"nodes": names}],
        "byNode": dict.fromkeys(names, 1),
    }
    cut = limit_size(document)
    assert len(msgspec.json.encode(cut)) <= LARGEST + 200
    kept = sum(len(group["nodes"]) for group in cut["groups"])
    assert cut["truncated"]["groups.nodes"] == 2 * nodes - kept
    assert cut["truncated"]["byNode"] == nodes - len(cut["byNode"])
    assert document["groups"][0]["nodes"] == names


def test_records_keep_all_their_fields() -> None:
    record = {f"field{i}": i for i in range(20)}
    document = {"kind": "X", "items": [record] * 2_000, "texts": ["long " * 100] * 100}
    assert all(item == record for item in limit_size(document)["items"])

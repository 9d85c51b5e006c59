"""The page on the library: its table is that of the docstrings, its example runs, and its names are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.front_server import fronted
from tests.unit.ask.clusters import shop
from tests.unit.docs.pages import ROOT, blocks
from tools.library_page import PAGE, page_with_table

from kubesched_sandbox.http import kubeconfig, write_kubeconfig


def test_the_table_is_that_of_the_docstrings() -> None:
    assert page_with_table(PAGE.read_text()) == PAGE.read_text(), "run python tools/library_page.py"


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [example] = blocks(ROOT / "docs" / "library.md", "python")
    with fronted(shop()) as front:
        access = kubeconfig(front.url)
        access["contexts"].append({**access["contexts"][0], "name": "prod"})
        access["current-context"] = "prod"
        write_kubeconfig(tmp_path / "kubeconfig", access)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        example = example.replace("shop/checkout-7d9c", "default/tall")
        example = example.replace("topology.kubernetes.io/zone=zone-a", "kubernetes.io/hostname=node-0")
        found: dict[str, object] = {}
        exec(compile(example, "docs/library.md", "exec"), found)
    assert repr(found["cluster"]).startswith("<Cluster: 4 nodes")

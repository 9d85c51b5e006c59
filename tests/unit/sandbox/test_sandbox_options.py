"""What `kubesched sandbox` prints and writes for other programs works as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.api.yaml import documents
from kubesched.cli.main import main
from kubesched_sandbox.cli import names_of
from kubesched_sandbox.http import kubeconfig
from kubesched_sandbox.nodes import gpus_of, node_manifests
from kubesched_sandbox.view import hints_for

TEMPLATES = """
kind: Node
count: 2
metadata: {name: web}
---
kind: Node
metadata: {name: big, annotations: {kubesched.io/gpus: "4"}}
"""


@pytest.mark.parametrize("count", [1, 10, 30, 2000])
def test_hints_name_nodes_that_there_are(count: int) -> None:
    names = names_of(node_manifests(count))
    about_nodes = [hint.split() for hint in hints_for(names) if " node" in hint]
    assert len(about_nodes) == 2
    assert all(set(words) & set(names) for words in about_nodes)


def test_without_nodes_no_hint_is_about_one() -> None:
    assert not any("node" in hint for hint in hints_for(()))


def test_a_kubeconfig_for_plain_http_is_one_that_every_client_takes() -> None:
    cluster = kubeconfig("http://127.0.0.1:1")["clusters"][0]["cluster"]
    assert cluster["insecure-skip-tls-verify"] is True
    assert (
        "insecure-skip-tls-verify" not in kubeconfig("https://127.0.0.1:1", authority=b"pem")["clusters"][0]["cluster"]
    )


def test_gpus_are_on_some_nodes() -> None:
    assert gpus_of(node_manifests(3), 2) == {"node-0": 2, "node-1": 2, "node-2": 2}
    assert gpus_of(node_manifests(3), 2, on_last=1) == {"node-0": 0, "node-1": 0, "node-2": 2}
    templates = [document.value for document in documents(TEMPLATES)]
    assert gpus_of(node_manifests(templates), 0) == {"web-0": 0, "web-1": 0, "big": 4}


def sandbox(*options: str) -> str:
    shown = CliRunner().invoke(main, ["sandbox", "--for", "0", "--no-ui", *options], catch_exceptions=False)
    return shown.output


def test_gpus_of_a_node_file_that_are_no_number_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(TEMPLATES.replace('"4"', "many"))
    assert "document 2: annotation kubesched.io/gpus: expected a number, got 'many'" in sandbox(
        "--node-file", str(file)
    )

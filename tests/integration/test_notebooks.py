"""The notebooks of examples/notebooks run from top to bottom, in a real kernel, and show what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.front_server import fronted
from tests.unit.ask.clusters import shop

from kubesched_sandbox.http import kubeconfig, write_kubeconfig

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
SHOWN = {
    "why-pending.ipynb": (
        "Insufficient cpu",
        "&lt;Cluster: 4 nodes",
        "<iframe",
        "scheduler configuration: the defaults",
    ),
    "compare-policies.ipynb": ("nodes_used", "image/png", "'packed': 4"),
    "write-a-plugin.ipynb": ("node(s) cost too much", "cheap"),
}

pytestmark = [pytest.mark.slow, pytest.mark.live]


def test_every_notebook_is_tried() -> None:
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_runs_and_shows_what_it_promises(name: str, tmp_path: Path) -> None:
    with fronted(shop()) as front:
        write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(front.url))
        environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig"), "IPYTHONDIR": str(tmp_path)}
        command = ["-m", "nbconvert", "--to", "html", "--execute", str(NOTEBOOKS / name), "--output-dir", str(tmp_path)]
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / name).with_suffix(".html").read_text()
    for text in SHOWN[name]:
        assert text in page, text

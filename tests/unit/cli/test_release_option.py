"""Which release offline commands decide as: --release, else that of the snapshot or live cluster, else the newest."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.front_server import Front, fronted
from tests.unit.ask.clusters import shop

from kubesched import Cluster
from kubesched.cli.main import main
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

ONLY_IN_1_36 = "no new claims to deallocate"
"""What PostFilter says of a pod that fits nowhere."""


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """The API server of the current context, which is one of v1.36.4."""
    monkeypatch.chdir(tmp_path)
    with fronted(shop()) as front:
        write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(front.url))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield front


def release_in(*arguments: str) -> str:
    """The release whose words the explanation has."""
    result = CliRunner().invoke(main, ["explain", "--pod", "default/tall", "-o", "json", *arguments])
    assert result.exit_code == 0, result.output
    return "1.36" if ONLY_IN_1_36 in result.stdout else "1.37"


def test_a_live_cluster_says_which_release_it_is(front: Front) -> None:
    assert release_in() == "1.36"
    assert release_in("--release", "1.37") == "1.37"


def test_a_live_cluster_that_does_not_say_its_version_is_taken_for_the_newest(front: Front) -> None:
    front.denied.add("/version")
    assert release_in() == "1.37"
    assert release_in("--release", "1.36") == "1.36"


@pytest.mark.parametrize(
    ("version", "release"), [("v1.36.2", "1.36"), ("v1.37.1", "1.37"), ("v1.29.0", "1.37"), ("", "1.37")]
)
def test_a_snapshot_says_which_release_it_was_taken_from(front: Front, version: str, release: str) -> None:
    assert CliRunner().invoke(main, ["snapshot", "-o", "cluster.json.gz"]).exit_code == 0
    snapshot = json.loads(gzip.decompress(Path("cluster.json.gz").read_bytes()))
    assert snapshot["serverVersion"] == "v1.36.4"
    Path("cluster.json").write_text(json.dumps({**snapshot, "serverVersion": version}))
    assert release_in("-f", "cluster.json") == release
    assert release_in("-f", "cluster.json", "--release", "1.36") == "1.36"
    assert Cluster.from_snapshot("cluster.json").configuration.features.release.name == release
    assert Cluster.from_snapshot("cluster.json", release="1.37").configuration.features.release.name == "1.37"


def test_a_recording_is_replayed_as_the_release_that_made_it(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    for release in ("1.36", "1.37"):
        arguments = ["simulate", "-f", "examples/shop", "--release", release, "--record", str(recording)]
        assert CliRunner().invoke(main, arguments).exit_code == 0
        assert CliRunner().invoke(main, ["replay", str(recording)]).exit_code == 0
        header, *rest = recording.read_text().splitlines()
        assert json.loads(header)["release"] == release
    recording.write_text("\n".join([json.dumps({**json.loads(header), "release": "1.20"}), *rest]))
    result = CliRunner().invoke(main, ["replay", str(recording)])
    assert "line 1: release: not one of 1.36, 1.37: 1.20" in result.output

"""The manifest for Krew and the formula for Homebrew: filled from what was built, nothing left open."""

from __future__ import annotations

import hashlib
import re
import tarfile
from pathlib import Path

import pytest
import yaml
from tools.locked import RUN
from tools.package_channels import ARCHIVE, WHEEL, write

from kubesched import __version__


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    (tmp_path / WHEEL).write_bytes(b"a wheel")
    write(tmp_path, 1_700_000_000)
    return tmp_path


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_archive_has_what_the_command_installs(dist: Path) -> None:
    with tarfile.open(dist / ARCHIVE) as archive:
        modes = {entry.name: entry.mode for entry in archive}
        archive.extractall(dist / "out", filter="data")
    assert modes == {"LICENSE": 0o644, "kubectl-sched": 0o755, WHEEL: 0o644, "requirements.txt": 0o644}
    assert (dist / "out" / "requirements.txt").read_bytes() == RUN.read_bytes()


def test_the_same_wheel_gives_the_same_archive(dist: Path) -> None:
    before = digest(dist / ARCHIVE)
    (dist / WHEEL).touch()
    write(dist, 1_700_000_000)
    assert digest(dist / ARCHIVE) == before
    (dist / WHEEL).write_bytes(b"another")
    write(dist, 1_700_000_000)
    assert digest(dist / ARCHIVE) != before


def test_the_manifest_of_krew_names_the_archive_for_every_platform(dist: Path) -> None:
    manifest = yaml.safe_load((dist / "sched.yaml").read_text())
    assert (manifest["metadata"]["name"], manifest["spec"]["version"]) == ("sched", f"v{__version__}")
    assert len(manifest["spec"]["shortDescription"]) <= 50
    platforms = manifest["spec"]["platforms"]
    systems = [tuple(platform["selector"]["matchLabels"].values()) for platform in platforms]
    assert sorted(systems) == [("darwin", "amd64"), ("darwin", "arm64"), ("linux", "amd64"), ("linux", "arm64")]
    for platform in platforms:
        assert platform["sha256"] == digest(dist / ARCHIVE)
        assert platform["uri"].endswith(f"/releases/download/v{__version__}/{ARCHIVE}")
        assert platform["bin"] == "kubectl-sched"


def test_the_formula_of_homebrew_names_the_archive_and_its_files(dist: Path) -> None:
    formula = (dist / "kubesched.rb").read_text()
    assert re.findall(r'^  sha256 "(.+)"$', formula, re.MULTILINE) == [digest(dist / ARCHIVE)]
    assert f'"--no-deps", "{WHEEL}"' in formula
    assert "{{" not in formula
    share = Path(__file__).parents[3] / "share"
    assert all((share / place).exists() for place in re.findall(r'libexec/"share/([^"*]+)"', formula))

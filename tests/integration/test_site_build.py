"""The site of docs/ is built without a warning: all links and anchors lead somewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tools.site_links import REPOSITORY, outward

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.live]


def build(root: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(root / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    site = ["--site-dir", str(tmp_path / "site")]
    return subprocess.run([*command, *site], env=environment, capture_output=True, text=True, timeout=240)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert "Step by step" in (tmp_path / "site" / "index.html").read_text()


def test_a_link_that_leads_nowhere_fails_it(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[gone](gone.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\ntheme: {name: material}\n")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    assert "gone.md" in done.stderr


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[x](../deploy/README.md)", f"[x]({REPOSITORY}/blob/main/deploy/README.md)"),
        ("[x](../SECURITY.md#reports)", f"[x]({REPOSITORY}/blob/main/SECURITY.md#reports)"),
        ("[x](../deploy)", f"[x]({REPOSITORY}/tree/main/deploy)"),
        ("[x](output.md#a)", "[x](output.md#a)"),
        ("[x](https://kubernetes.io)", "[x](https://kubernetes.io)"),
    ],
)
def test_links_that_leave_the_docs_lead_to_the_repository(link: str, target: str) -> None:
    assert outward(link, "page.md") == target


def test_the_site_keeps_a_version_for_each_release(tmp_path: Path) -> None:
    """The step that publishes, as the runner starts it, for main and then for a tag."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text())
    [step] = [step for step in workflow["jobs"]["publish"]["steps"] if step.get("id") == "versions"]
    checkout, remote = tmp_path / "checkout", tmp_path / "remote.git"
    (checkout / "docs").mkdir(parents=True)
    (checkout / "docs" / "index.md").write_text("# Here\n")
    settings = (
        (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[0]
    )  # without the pages: their build is tested above
    (checkout / "mkdocs.yml").write_text(settings + "\n")
    (checkout / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "site_links.py", checkout / "tools")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "NO_MKDOCS_2_WARNING": "1", "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*command: str, **variables: str) -> str:
        done = subprocess.run(
            command, cwd=checkout, env={**environment, **variables}, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def publish(kind: str, name: str) -> None:
        run("bash", "-eo", "pipefail", "-c", step["run"], GITHUB_REF_TYPE=kind, GITHUB_REF_NAME=name)

    def shown() -> tuple[dict[str, list[str]], str]:
        versions = json.loads(run("git", "--git-dir", str(remote), "show", "gh-pages:versions.json"))
        first = run("git", "--git-dir", str(remote), "show", "gh-pages:index.html")
        return {each["version"]: each["aliases"] for each in versions}, first

    run("git", "init", "--quiet", "--bare", str(remote))
    run("git", "init", "--quiet", "--initial-branch=main")
    run(
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "Begin",
    )
    run("git", "remote", "add", "origin", str(remote))
    publish("branch", "main")
    versions, first = shown()
    assert versions == {"main": []}
    assert 'url=main/"' in first
    publish("tag", "v0.1.0")
    publish("tag", "v0.2.0")
    publish("branch", "main")
    versions, first = shown()
    assert versions == {"main": [], "0.2": ["latest"], "0.1": []}
    assert 'url=latest/"' in first

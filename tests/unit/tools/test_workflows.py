"""Workflows: nothing runs in them that can be changed from outside, and their tokens may do no more than they need.

These are checks of OpenSSF Scorecard (Pinned-Dependencies, Token-Permissions, Dangerous-Workflow, Security-Policy,
License, Dependency-Update-Tool, SBOM, Signed-Releases), so that a change that breaks one fails before it is merged.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = (ROOT / ".github" / "workflows" / "release.yml").read_text()
everywhere = pytest.mark.parametrize("file", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda file: file.name)
in_workflows = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
WRITES = {
    ("release.yml", "package"): {"contents", "id-token", "attestations"},
    ("release.yml", "image"): {"packages", "id-token", "attestations"},
    ("scorecard.yml", "scorecard"): {"security-events", "id-token"},
    ("site.yml", "publish"): {"contents"},
}
"""What jobs may write; all others only read."""


def jobs(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())["jobs"]
    return found


def scripts(file: Path) -> list[str]:
    return [step["run"] for job in jobs(file).values() for step in job["steps"] if "run" in step]


@everywhere
def test_actions_are_pinned_by_commit_with_the_version_beside_it(file: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses: (.+)$", file.read_text(), re.MULTILINE)
    assert used
    assert [use for use in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_an_action_is_pinned_to_one_commit_everywhere() -> None:
    text = "".join(file.read_text() for file in (*WORKFLOWS, ROOT / "action.yml"))
    pins = set(re.findall(r"uses: ([\w./-]+)@([0-9a-f]{40} # \S+)", text))
    assert len(pins) == len({action for action, _ in pins})


@in_workflows
def test_tokens_read_and_named_jobs_write_what_they_need(file: Path) -> None:
    assert yaml.safe_load(file.read_text())["permissions"] == {"contents": "read"}
    for name, job in jobs(file).items():
        written = {scope for scope, right in job.get("permissions", {}).items() if right == "write"}
        assert written == WRITES.get((file.name, name), set()), name


@in_workflows
def test_only_a_job_that_pushes_keeps_its_credentials_in_the_checkout(file: Path) -> None:
    for name, job in jobs(file).items():
        kept = [
            step
            for step in job["steps"]
            if step.get("uses", "").startswith("actions/checkout@")
            and step.get("with", {}).get("persist-credentials", True)
        ]
        assert bool(kept) == ((file.name, name) == ("site.yml", "publish")), name


@in_workflows
def test_nothing_that_a_stranger_wrote_is_run(file: Path) -> None:
    text = file.read_text()
    assert "pull_request_target" not in text
    assert "workflow_run" not in text
    expressions = {each for script in scripts(file) for each in re.findall(r"\$\{\{\s*(.+?)\s*\}\}", script)}
    assert expressions <= {"github.run_number"}


@in_workflows
def test_packages_are_installed_by_hash_from_what_was_built_or_in_one_version(file: Path) -> None:
    for script in scripts(file):
        for line in script.splitlines():
            if re.search(r"\bpip (install|wheel|download)\b", line):
                assert "--require-hashes" in line or ("--no-index" in line and "--no-deps" in line), line
            if "pipx run" in line:
                assert re.search(r"--spec [\w-]+==\S+", line), line
            assert not re.search(r"(curl|wget).*\|\s*(ba)?sh", line), line


def test_every_tool_that_a_workflow_calls_is_there() -> None:
    called = {name for file in WORKFLOWS for script in scripts(file) for name in re.findall(r"-m (tools\.\w+)", script)}
    assert called == {"tools.sbom", "tools.package_channels"}
    assert all(importlib.util.find_spec(name) for name in called)


def test_a_release_is_attested_with_what_is_in_it() -> None:
    package = yaml.safe_load(RELEASE)["jobs"]["package"]["steps"]
    used = {step["uses"].partition("@")[0]: step["with"] for step in package if "uses" in step and "with" in step}
    assert used["actions/attest-build-provenance"]["subject-path"] == "dist/*"
    assert used["actions/attest-sbom"]["sbom-path"] == "dist/kubesched.spdx.json"
    assert "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)" in RELEASE


def test_scorecard_finds_a_policy_a_license_and_who_raises_pins() -> None:
    policy = (ROOT / "SECURITY.md").read_text()
    assert "Report a vulnerability" in policy
    assert re.search(r"\b(days|week)\b", policy)
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "sandbox" / "LICENSE").read_bytes()
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"github-actions", "docker"}

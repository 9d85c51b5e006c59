"""The manifests of well-known projects' shape, applied as their users apply them: with kubectl, one sandbox for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.running_sandbox import Sandbox

from kubesched.api.kinds import BUILT_IN

PROJECTS = sorted(Path(__file__).with_name("projects").glob("*.yaml"))
OWN = sorted(Path(__file__).parents[2].joinpath("deploy/manifests").glob("*.yaml"))
ROLLED_OUT = ("Deployment", "StatefulSet", "DaemonSet")
ALWAYS_PATCHED = ("poddisruptionbudget.policy/", "statefulset.apps/", "raycluster.ray.example.com/")
"""To any API server, kubectl sends with every apply the selector of a budget, the claim templates of a set, and a list
in a custom resource whose items were given defaults."""
WAIT = "--timeout=100s"


def documents(path: Path) -> list[dict[str, Any]]:
    loaded = [each for each in yaml.safe_load_all(path.read_text()) if each]
    return [item for each in loaded for item in (each["items"] if each["kind"] == "List" else [each])]


def named(obj: dict[str, Any]) -> list[str]:
    """What kubectl is told to find an object."""
    kind, group = obj["kind"].lower(), obj["apiVersion"].rpartition("/")[0]
    return [f"{kind}.{group}/{obj['metadata']['name']}" if group else f"{kind}/{obj['metadata']['name']}"]


def scope(obj: dict[str, Any]) -> list[str]:
    return ["-n", obj["metadata"].get("namespace", "default")]


def apply(sandbox: Sandbox, path: Path) -> None:
    """Definitions first, as every installation guide has it: kubectl knows no kinds that come with the same file."""
    loaded = documents(path)
    definitions = [each for each in loaded if each["kind"] == "CustomResourceDefinition"]
    if definitions:
        text = yaml.safe_dump_all(definitions)
        sandbox.kubectl("apply", "-f", "-", stdin=text)
        sandbox.kubectl("wait", "--for=condition=Established", "-f", "-", WAIT, stdin=text)
    sandbox.kubectl("apply", "-f", str(path))


@pytest.mark.parametrize("path", [*PROJECTS, *OWN], ids=lambda path: path.stem)
def test_a_project_is_applied_runs_is_shown_and_goes(sandbox: Sandbox, path: Path) -> None:
    apply(sandbox, path)
    loaded = documents(path)
    for obj in loaded:
        if obj["kind"] in ROLLED_OUT and path in PROJECTS:
            sandbox.kubectl("rollout", "status", *named(obj), *scope(obj), WAIT)
    again = sandbox.kubectl("apply", "-f", str(path)).splitlines()
    changed = [line for line in again if not line.endswith(" unchanged")]
    assert [line for line in changed if not line.startswith(ALWAYS_PATCHED)] == []
    assert len(sandbox.kubectl("get", "-f", str(path), "-o", "name").split()) == len(loaded)
    described = [obj for obj in loaded if obj["kind"] != "VolumeAttributesClass"]  # older kubectls ask for its beta
    told = sandbox.kubectl("describe", "-f", "-", stdin=yaml.safe_dump_all(described))
    assert all(obj["metadata"]["name"] in told for obj in described)
    finalized = [obj for obj in loaded if obj["metadata"].get("finalizers")]
    for obj in finalized:
        sandbox.kubectl("patch", *named(obj), *scope(obj), "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    sandbox.kubectl("delete", "-f", str(path), "--ignore-not-found", WAIT)
    assert sandbox.kubectl("get", "-f", str(path), "-o", "name", "--ignore-not-found") == ""


def test_there_are_twenty_projects_and_every_kind_of_theirs_is_served() -> None:
    assert len(PROJECTS) >= 20
    kinds = {(obj["apiVersion"], obj["kind"]) for path in PROJECTS for obj in documents(path)}
    assert len(kinds & BUILT_IN.keys()) >= 30, sorted(kinds)

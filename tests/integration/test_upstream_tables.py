"""The scripts that turn a Kubernetes release into tables, on a release that is made up."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tools import feature_gates, kinds, metrics
from tools.upstream import Release

GATES = """
- name: OnForLong
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.34"}
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.36"}
- name: OnFromNextYear
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.36"}
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.37"}
- name: ControllerManagerReleaseLeaderElectionLockOnExit
  versionedSpecs:
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.36"}
"""
SOURCE = """
	OnForLong featuregate.Feature = "OnForLong"
	NextYear featuregate.Feature = "OnFromNextYear"

var defaultKubernetesFeatureGateDependencies = map[featuregate.Feature][]featuregate.Feature{
	OnForLong: {},
	NextYear: {genericfeatures.OnForLong, featuregate.Feature(clientfeatures.Streams)}, // a remark
}
"""
CLIENT = """
	Streams Feature = "Streams"

var defaultVersionedKubernetesFeatureGates = map[Feature]VersionedSpecs{
	Streams: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: Alpha},
		{Version: version.MustParse("1.35"), Default: true, PreRelease: Beta},
	},
}
"""
DOCUMENTED = """
- name: attempts_total
  subsystem: scheduler
  type: Counter
  stabilityLevel: ALPHA
  labels: [profile, result]
  componentEndpoints: [{component: kube-scheduler}]
- name: duration_seconds
  subsystem: scheduler
  type: Histogram
  stabilityLevel: ALPHA
  buckets: [0.001, 0.002]
  componentEndpoints: [{component: kube-scheduler}]
- name: of_the_kubelet
  type: Gauge
  stabilityLevel: ALPHA
  componentEndpoints: [{component: kubelet}]
"""
STABLE = """
- {name: attempts_total, subsystem: scheduler, type: Counter, stabilityLevel: STABLE, labels: [profile, result]}
"""
APPS = """
{"groupVersion": "apps/v1", "resources": [
  {"name": "deployments", "kind": "Deployment", "singularName": "deployment", "namespaced": true,
   "shortNames": ["deploy"],
   "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]},
  {"name": "deployments/scale", "kind": "Scale", "singularName": "", "namespaced": true, "verbs": ["get"]}
]}
"""
FILES = {
    f"{kinds.DISCOVERY}/apis__apps__v1.json": APPS,
    f"{kinds.DISCOVERY}/apis__apps.json": "not read",
    feature_gates.LIST: GATES,
    **dict.fromkeys(feature_gates.SOURCES, ""),
    feature_gates.SOURCES[0]: SOURCE,
    feature_gates.CLIENT: CLIENT,
    metrics.LISTS[0]: DOCUMENTED,
    metrics.LISTS[1]: STABLE,
}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    clone = tmp_path / "clone"
    for path, text in FILES.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "all"), ("tag", "v1.36.1")):
        subprocess.run(["git", "-C", str(clone), *command], check=True)
    return Release(str(clone / ".git"), "v1.36.1")


def test_gates_are_those_of_the_release_with_what_they_need(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_gates, "FOLDER", tmp_path)
    feature_gates.main(release)
    first, header, *rows = (tmp_path / "feature_gates-1.36.tsv").read_text().splitlines()
    assert first.startswith("# v1.36.1")
    assert header.split() == ["gate", "stage", "default", "locked", "needs"]
    assert [row.split("\t") for row in rows] == [
        ["AllAlpha", "ALPHA", "false", "", ""],
        ["AllBeta", "BETA", "false", "", ""],
        ["OnForLong", "GA", "true", "locked", ""],
        ["OnFromNextYear", "ALPHA", "false", "", "Streams"],
        ["Streams", "BETA", "true", "", ""],
    ]


def test_facts_about_metrics_are_brought_up_to_date_and_words_are_kept(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "catalogue.tsv"
    header = "group\tname\ttype\tstability\tlabels\tbuckets\tgate\thelp"
    ours = "process\tours_alone\tgauge\tALPHA\t\t\t\tOurs."
    table.write_text(
        f"# old\n{header}\nscheduler\tscheduler_attempts_total\t\t\tresult profile\t\tGate\tHelp.\n{ours}\n"
    )
    monkeypatch.setattr(metrics, "TABLE", table)
    metrics.main(release)
    attempts = "scheduler\tscheduler_attempts_total\tcounter\tSTABLE\tresult profile\t\tGate\tHelp."
    assert table.read_text().splitlines() == ["# v1.36.1: python -m tools.metrics", header, attempts, ours]
    assert capsys.readouterr().out.splitlines() == [
        "not in upstream's lists: ours_alone",
        "not in the catalogue: scheduler_duration_seconds",
    ]


def test_kinds_are_those_of_the_discovery_documents(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "FOLDER", tmp_path)
    kinds.main(release)
    written = json.loads((tmp_path / "kinds-1.36.json").read_text())
    assert written["release"] == "v1.36.1"
    [deployments] = written["resources"]
    assert (deployments["group"], deployments["version"], deployments["kind"]) == ("apps", "v1", "Deployment")
    assert deployments["subresources"] == ["scale"]
    assert "verbs" not in deployments  # all of them


def test_a_tag_that_does_not_exist_is_named(release: Release) -> None:
    with pytest.raises(SystemExit, match=r"v9\.9\.9"):
        Release(release._git_dir, "v9.9.9").read("anything")

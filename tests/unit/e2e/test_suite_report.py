"""What is read from the report of Kubernetes' end-to-end suite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from e2e import compare
from e2e.__main__ import main, print_table
from e2e.specs import SETS, Choice
from e2e.suite import Result, Spec, specs_of

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="Kubernetes e2e suite">
  <testcase name="[SynchronizedBeforeSuite]" time="1"/>
  <testcase name="[It] [sig-scheduling] Predicates [Serial] validates limits [Conformance]" time="4.2"/>
  <testcase name="[It] [sig-apps] Job should run" time="0"><skipped message="skipped"/></testcase>
  <testcase name="[It] [sig-apps] Deployment" time="0"><skipped message="skipped - needs 3 nodes"/></testcase>
  <testcase name="[It] [sig-node] Pods" time="9"><failure message="timed out&#10;after 5 s"/></testcase>
</testsuite></testsuites>
"""


def test_specs_that_were_chosen_are_read_with_their_results(tmp_path: Path) -> None:
    report = tmp_path / "junit_01.xml"
    report.write_text(REPORT)
    assert [(spec.short_name, spec.result, spec.reason) for spec in specs_of(report)] == [
        ("[sig-scheduling] Predicates validates limits", Result.PASSED, ""),
        ("[sig-apps] Deployment", Result.SKIPPED, "needs 3 nodes"),
        ("[sig-node] Pods", Result.FAILED, "timed out"),
    ]


def test_table_ends_with_failures_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    specs = [Spec("[It] b", Result.FAILED, 3, "broke"), Spec("[It] a [Slow]", Result.PASSED, 61)]
    print_table(specs, "kubesched")
    assert capsys.readouterr().out.splitlines() == [
        "passed       61 s  a",
        "failed        3 s  b",
        "                    broke",
        "kubesched: 1 passed, 1 failed, 0 skipped",
    ]


def takes(choice: Choice, name: str) -> bool:
    """As the suite does it."""
    return any(re.search(each, name) for each in choice.focus) and not any(
        re.search(each, name) for each in choice.skip
    )


@pytest.mark.parametrize(
    ("name", "chosen_by"),
    [
        ("[sig-scheduling] SchedulerPredicates [Serial] validates limits [Conformance]", ["scheduling"]),
        ("[sig-apps] ReplicaSet should list and delete a collection of ReplicaSets [Conformance]", ["conformance"]),
        ("[sig-node] Pods should be submitted and removed [NodeConformance] [Conformance]", ["conformance"]),
        ("[sig-apps] ReplicaSet should serve a basic image on each replica [Conformance]", []),
        ("[sig-node] Probing container should be restarted [NodeConformance] [Conformance]", []),
        ("[sig-apps] Deployment should do what is not conformance", []),
    ],
)
def test_each_spec_is_in_one_set_at_most(name: str, chosen_by: list[str]) -> None:
    assert [set_name for set_name, choice in SETS.items() if takes(choice, name)] == chosen_by


def report_in(folder: Path, **results: str) -> Path:
    """A folder with a report of these specs."""
    folder.mkdir()
    cases = "".join(f'<testcase name="[It] {name}" time="1">{result}</testcase>' for name, result in results.items())
    (folder / "junit_01.xml").write_text(f"<testsuite>{cases}</testsuite>")
    return folder


FAILED = '<failure message="broke"/>'


def test_specs_that_pass_only_with_the_peer_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peer = report_in(tmp_path / "peer", a="", b="", c=FAILED, d="")
    ours = report_in(tmp_path / "ours", a="", b=FAILED, c=FAILED)
    assert compare.main(["--kube-scheduler", str(peer), "--kubesched", str(ours)]) == 1
    said = capsys.readouterr().out
    assert said.endswith(
        "2 pass with kube-scheduler and not with kubesched\n    b\n        broke\n    d\n        was not run\n"
    )


def test_spec_that_passes_when_it_is_run_again_counts_as_passed(tmp_path: Path) -> None:
    peer = report_in(tmp_path / "peer", a="")
    ours = [report_in(tmp_path / "first", a=FAILED), report_in(tmp_path / "again", a="")]
    assert compare.main(["--kube-scheduler", str(peer), "--kubesched", *map(str, ours)]) == 0


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert main([]) == 2
    assert "KUBEBUILDER_ASSETS is not set" in capsys.readouterr().err

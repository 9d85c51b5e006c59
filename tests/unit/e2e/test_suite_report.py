"""What is read from the report of Kubernetes' end-to-end suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.__main__ import main, print_table
from e2e.specs import SETS
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


def test_no_spec_is_in_two_sets() -> None:
    assert SETS["scheduling"].focus in SETS["conformance"].skip


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert main([]) == 2
    assert "KUBEBUILDER_ASSETS is not set" in capsys.readouterr().err

"""Runs placement tests, each case on its own cluster, in virtual time, to the end; and tells CI systems of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from kubesched.ask.placement_tests.arranging import objects_of, settings_of
from kubesched.ask.placement_tests.case import Case
from kubesched.ask.placement_tests.checks import Check, ScheduledCluster, checks
from kubesched.ask.what_if.outcome import outcome
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case."""

    name: str
    file: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


@dataclass(frozen=True)
class TestResults:
    """What became of all cases."""

    __test__ = False  # it is none of pytest's

    passed: int
    failed: int
    cases: tuple[CaseResult, ...]


def run_case(case: Case, default: SchedulerConfiguration, *, plugins: Registry | None = None) -> CaseResult:
    """Schedule what the case has, and look. Raises UserError for what cannot be read."""
    settings, seed = settings_of(case, default), case.content.seed
    found = ScheduledCluster(outcome(objects_of(case), settings, seed=seed, plugins=plugins), settings, seed, plugins)
    return CaseResult(
        case.name, case.file, tuple(check for each in case.content.expect for check in checks(found, each))
    )


def results(cases: tuple[CaseResult, ...]) -> TestResults:
    passed = sum(case.holds for case in cases)
    return TestResults(passed, len(cases) - passed, cases)


def junit(results: TestResults, seconds: Mapping[tuple[str, str], float]) -> str:
    """The whole document; `seconds` has what each case took, by its file and name."""
    checks = [check for case in results.cases for check in case.checks]
    root = ElementTree.Element(
        "testsuites",
        name="kubesched test",
        tests=str(len(checks)),
        failures=str(sum(not check.holds for check in checks)),
        errors="0",
        time=f"{sum(seconds.values()):.3f}",
    )
    for case in results.cases:
        _suite(root, case, seconds.get((case.file, case.name), 0.0))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(root: ElementTree.Element, case: CaseResult, seconds: float) -> None:
    failures = sum(not check.holds for check in case.checks)
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=case.name,
        file=case.file,
        tests=str(len(case.checks)),
        failures=str(failures),
        errors="0",
        time=f"{seconds:.3f}",
    )
    for check in case.checks:
        test = ElementTree.SubElement(suite, "testcase", name=check.expected, classname=case.name, file=case.file)
        if not check.holds:
            failure = ElementTree.SubElement(test, "failure", message=check.problems[0], type="placement")
            failure.text = "\n".join((*check.problems, *check.explanation))

"""Runs placement tests: each case on its own cluster, by the scheduler in virtual time, to the end."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.questions.placement_tests.arranging import objects_of, settings_of
from kubesched.questions.placement_tests.case import Case
from kubesched.questions.placement_tests.checks import Check, ScheduledCluster, checks
from kubesched.questions.what_if.outcome import outcome


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

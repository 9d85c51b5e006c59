"""Results as JUnit XML, which CI systems read: a suite per case, a test per check."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

from kubesched.questions.placement_tests.running import CaseResult, TestResults


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

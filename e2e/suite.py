"""The suite as a process (`e2e.test`), and what its report says of each spec."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.peer.control_plane import ADMIN, ControlPlane, binary
from bench.processes import Process

from e2e.specs import Choice

REPORT = "junit_01.xml"
_LONGEST = "3h"
_ATTEMPTS = 2
"""Most limits of the suite are a minute or five, which a busy machine may miss once."""
_TAGS = re.compile(r"\s*\[(?!sig-)[^\]]*\]")
_PREFIX = re.compile(r"^\[It\]\s*")


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Spec:
    """One spec that was chosen, and how it went."""

    name: str
    result: Result
    seconds: float
    reason: str = ""
    """Why it failed, in the first line of the suite's own words."""

    @property
    def short_name(self) -> str:
        """Without the tags that only choose specs."""
        return _TAGS.sub("", _PREFIX.sub("", self.name)).strip()


class Suite(Process):
    """The suite at work; it ends with the `with` block."""

    def __init__(self, plane: ControlPlane, choice: Choice, output: Path) -> None:
        self.report = output / REPORT
        command = [
            str(binary("e2e.test")),
            "--provider=skeleton",
            f"--kubeconfig={plane.kubeconfig(ADMIN)}",
            f"--kubectl-path={binary('kubectl')}",
            "--allowed-not-ready-nodes=0",
            f"--report-dir={output}",
            *(f"-ginkgo.focus={pattern}" for pattern in choice.focus),
            *(f"-ginkgo.skip={pattern}" for pattern in choice.skip),
            f"-ginkgo.timeout={_LONGEST}",
            "-ginkgo.no-color",
            f"-ginkgo.flake-attempts={_ATTEMPTS}",
        ]
        self.log = output / "e2e.log"
        with self.log.open("w") as log:
            super().__init__(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True))

    def ended(self) -> int:
        """How many specs have ended so far: the suite draws a dot for each that it ran, and an S for the others."""
        return self.log.read_text(errors="replace").count("•")


def specs_of(report: Path) -> list[Spec]:
    """What was chosen, in the order in which it was run."""
    cases = ElementTree.parse(report).iter("testcase")
    specs = (_spec(case) for case in cases if case.get("name", "").startswith("[It]"))
    return [spec for spec in specs if spec is not None]


def _spec(case: ElementTree.Element) -> Spec | None:
    """None for a spec that was not chosen: the report has them all."""
    name, seconds = case.get("name", ""), float(case.get("time", "0"))
    for broken in ("failure", "error"):
        if (found := case.find(broken)) is not None:
            text = (found.get("message") or found.text or "").strip()
            return Spec(name, Result.FAILED, seconds, text.partition("\n")[0])
    if (found := case.find("skipped")) is not None:
        _, _, reason = (found.get("message") or "").partition(" - ")
        return Spec(name, Result.SKIPPED, seconds, reason) if reason else None
    return Spec(name, Result.PASSED, seconds)

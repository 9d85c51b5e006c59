"""Reads a list of locked requirements, as `make lock` writes them: names, versions, hashes, and what asked for each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = ROOT / "requirements" / "run.txt"
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\")
_HASH = re.compile(r"    --hash=sha256:(?P<digest>[0-9a-f]{64})(?: \\)?")
_VIA = re.compile(r"    #(?: via|  ) *(?P<name>[A-Za-z0-9][\w.-]*)?(?: \(.*\))?")


@dataclass
class Locked:
    """A package in one version. The same name can stand there twice, for different Pythons."""

    name: str
    version: str
    marker: str
    """For which Pythons and systems; empty for all."""
    hashes: list[str] = field(default_factory=list)
    """SHA-256 of every file that may be installed."""
    needed_by: list[str] = field(default_factory=list)

    @property
    def purl(self) -> str:
        """Its package URL, which both kinds of SBOM and scanners for vulnerabilities know it by."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read(file: Path = RUN) -> list[Locked]:
    """All packages of the list. A line that is none of those above is a mistake: nothing is left out silently."""
    packages: list[Locked] = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        if pinned := _PINNED.fullmatch(line):
            packages.append(Locked(pinned["name"], pinned["version"], pinned["marker"] or ""))
        elif digest := _HASH.fullmatch(line):
            packages[-1].hashes.append(digest["digest"])
        elif via := _VIA.fullmatch(line):
            packages[-1].needed_by += [via["name"]] if via["name"] else []
        else:
            raise ValueError(f"{file.name}:{number}: not a line of a locked list: {line}")
    return packages

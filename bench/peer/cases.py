"""Reads upstream's `performance-config.yaml` files: cases, and the workloads of each."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bench.peer.operations import Operation, read_operations

FILE = "performance-config.yaml"
WITHIN_SOURCE = Path("test/integration/scheduler_perf")
_LOCKED = {"SchedulerQueueingHints": True}
"""Gates of files that the binaries no longer let one change."""


class CaseError(Exception):
    """What is asked for cannot be found or read."""


class Workload(msgspec.Struct, frozen=True):
    """One case at one size."""

    folder: Path
    """Paths of templates are relative to it."""
    case: str
    name: str
    template: list[dict[str, Any]]
    parameters: dict[str, Any]
    gates: dict[str, bool]
    labels: tuple[str, ...] = ()
    default_pod_template: str = ""
    scheduler_config: Path | None = None

    @property
    def full_name(self) -> str:
        return f"{self.case}/{self.name}"

    def operations(self) -> tuple[Operation, ...]:
        """Raises CaseError where the file says something that is not known here."""
        try:
            return read_operations(self.template, self.parameters)
        except (msgspec.ValidationError, ValueError) as error:
            raise CaseError(f"{self.folder / FILE}: {self.full_name}: {error}") from None

    def with_parameters(self, changes: dict[str, Any]) -> Workload:
        """The same with other sizes. Raises CaseError for a parameter that the workload does not have."""
        if unknown := changes.keys() - self.parameters.keys():
            known = ", ".join(self.parameters)
            raise CaseError(f"{self.full_name} has no parameter {', '.join(sorted(unknown))}; it has {known}")
        return msgspec.structs.replace(self, parameters=self.parameters | changes)

    def scaled(self, factor: float) -> Workload:
        """The same with so many times the nodes, pods, claims and namespaces; at least one of each that there was."""
        changes = {
            name: max(1, round(value * factor)) if value else 0
            for name, value in self.parameters.items()
            if isinstance(value, int) and not isinstance(value, bool) and _is_a_size(name)
        }
        return self.with_parameters(changes)


def _is_a_size(parameter: str) -> bool:
    name = parameter.lower()
    return "pernode" not in name and any(noun in name for noun in ("nodes", "pods", "claims", "namespaces", "slices"))


def read_workloads(root: Path) -> list[Workload]:
    """All workloads under a Kubernetes source tree, or under a folder with such files. Raises CaseError."""
    folder = root / WITHIN_SOURCE if (root / WITHIN_SOURCE).is_dir() else root
    files = sorted(folder.rglob(FILE))
    if not files:
        raise CaseError(f"no {FILE} under {root}: name a Kubernetes source tree, or its {WITHIN_SOURCE}")
    return [workload for file in files for workload in _of_file(file)]


def _of_file(file: Path) -> list[Workload]:
    cases = yaml.load(file.read_text(), yaml.CSafeLoader)
    return [_workload(file.parent, case, each) for case in cases for each in case["workloads"]]


def _workload(folder: Path, case: dict[str, Any], workload: dict[str, Any]) -> Workload:
    config = case.get("schedulerConfigPath")
    return Workload(
        folder,
        case["name"],
        workload["name"],
        case["workloadTemplate"],
        workload.get("params") or {},
        (case.get("featureGates") or {}) | (workload.get("featureGates") or {}),
        tuple(workload.get("labels") or ()),
        case.get("defaultPodTemplatePath") or "",
        folder / config if config else None,
    )


def is_possible(workload: Workload) -> bool:
    """Whether the binaries allow its gates."""
    return all(workload.gates.get(gate, value) == value for gate, value in _LOCKED.items())


def settable_gates(workload: Workload) -> dict[str, bool]:
    return {gate: value for gate, value in workload.gates.items() if gate not in _LOCKED}


def choose(workloads: Iterable[Workload], wanted: str) -> list[Workload]:
    """By `case/workload`, both with wildcards; a case alone is its largest workload. Raises CaseError for none."""
    possible = [each for each in workloads if is_possible(each)]
    case, _, name = wanted.partition("/")
    of_case = [each for each in possible if fnmatch.fnmatchcase(each.case, case)]
    if name:
        chosen = [each for each in of_case if fnmatch.fnmatchcase(each.name, name)]
    else:
        largest = {each.case: each for each in sorted(of_case, key=_size)}
        chosen = list(largest.values())
    if not chosen:
        raise CaseError(f"no workload is called {wanted}; --list names them all")
    return chosen


def _size(workload: Workload) -> int:
    return sum(value for name, value in workload.parameters.items() if isinstance(value, int) and _is_a_size(name))

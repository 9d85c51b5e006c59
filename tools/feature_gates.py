"""Write the table of feature gates of a Kubernetes release, as kube-scheduler has them.

    python -m tools.feature_gates kubernetes/.git v1.36.4

Run it from the top of the repository, for each release that is followed. Most gates are in upstream's own list
of them; those of client-go are read from their source, and so is which feature needs which. Only facts are read: names,
stages, defaults, whether a default is locked, dependencies. A new gate that the scheduler reads is then followed (a
field of kubesched.config.features) or named in NOT_FOLLOWED of kubesched/daemon/feature_gates.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tools.upstream import Release, release_on_command_line

FOLDER = Path("src/kubesched/config")

LIST = "test/compatibility_lifecycle/reference/versioned_feature_list.yaml"
CLIENT = "staging/src/k8s.io/client-go/features/known_features.go"
SOURCES = (
    "pkg/features/kube_features.go",
    "staging/src/k8s.io/apiserver/pkg/features/kube_features.go",
    "staging/src/k8s.io/apiextensions-apiserver/pkg/features/kube_features.go",
    CLIENT,
)
"""Where constants of gates are named; the first has the dependencies, too."""

OF_OTHERS = {"ControllerManagerReleaseLeaderElectionLockOnExit"}
"""Gates of binaries that kube-scheduler is not built with."""
OF_EVERY_BINARY = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}

_CONSTANT = re.compile(r'^\s*(\w+)\s+(?:featuregate\.)?Feature\s*=\s*"(\w+)"', re.MULTILINE)
_CLIENT_GATE = re.compile(r"^\t(\w+): \{\n((?:\t\t\{.*\},\n)+)\t\},$", re.MULTILINE)
_CLIENT_SPEC = re.compile(r'MustParse\("([\d.]+)"\), Default: (\w+), PreRelease: (\w+)(, LockToDefault: true)?')
_DEPENDENCIES = re.compile(r"FeatureGateDependencies = map.*?\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_DEPENDENCY = re.compile(r"^\t([\w.]+): *\{([^}]+)\}", re.MULTILINE)


class Gate(NamedTuple):
    """A row of the table."""

    stage: str
    default: bool
    locked: bool


def main(release: Release) -> None:
    gates = {name: Gate(stage, default=False, locked=False) for name, stage in OF_EVERY_BINARY.items()}
    for entry in yaml.safe_load(release.read(LIST)):
        if entry["name"] not in OF_OTHERS:
            gates[entry["name"]] = _current(entry["versionedSpecs"], release)
    constants = dict(pair for path in SOURCES for pair in _CONSTANT.findall(release.read(path)))
    for constant, text in _CLIENT_GATE.findall(release.read(CLIENT)):
        gates[constants[constant]] = _current([_spec(*found) for found in _CLIENT_SPEC.findall(text)], release)
    needs = _needs(release.read(SOURCES[0]), constants, gates)
    lines = [
        "\t".join((name, gate.stage, str(gate.default).lower(), "locked" if gate.locked else "", needs.get(name, "")))
        for name, gate in sorted(gates.items())
    ]
    header = "\t".join(("gate", "stage", "default", "locked", "needs"))
    table = FOLDER / f"feature_gates-{'.'.join(map(str, release.minor))}.tsv"
    table.write_text("\n".join((f"# {release.tag}: python -m tools.feature_gates", header, *lines, "")))


def _current(specs: list[dict[str, Any]], release: Release) -> Gate:
    """What a gate is at the release; later versions may be known already.

    A binary gets on with the minor version before its own, so what asks for more is not in force unless a flag says so.
    """
    major, minor = release.minor
    known = [
        spec
        for spec in specs
        if _version(spec["version"]) <= (major, minor)
        and _version(spec.get("minCompatibilityVersion", "0.0")) <= (major, minor - 1)
    ]
    return Gate(known[-1]["preRelease"].upper(), known[-1]["default"], known[-1]["lockToDefault"])


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _spec(version: str, default: str, stage: str, locked: str) -> dict[str, Any]:
    return {"version": version, "default": default == "true", "preRelease": stage, "lockToDefault": bool(locked)}


def _needs(source: str, constants: dict[str, str], gates: dict[str, Gate]) -> dict[str, str]:
    """The features that each gate needs, separated by spaces; those that cannot be off are left out."""
    block = _DEPENDENCIES.search(source)
    assert block is not None, "the map of dependencies is elsewhere in this release"
    found: dict[str, str] = {}
    for gate, listed in _DEPENDENCY.findall(block[1]):
        names = [constants[name.rpartition(".")[2]] for name in re.findall(r"[\w.]*\w(?=[,)\s]|$)", listed)]
        can_be_off = [name for name in names if gates[name] != Gate("GA", default=True, locked=True)]
        if can_be_off:
            found[constants[gate.rpartition(".")[2]]] = " ".join(can_be_off)
    return found


if __name__ == "__main__":
    main(release_on_command_line())

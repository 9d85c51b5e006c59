"""The release of Kubernetes that this follows: its version, and its feature gates with their stages and defaults."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from typing import NamedTuple

import msgspec

from kubesched import __version__
from kubesched.api.errors import UserError, aggregated
from kubesched.daemon.flag_values import parse_bool

COMPONENT = "kube"


class FeatureStage(StrEnum):
    """The stage of a feature."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Gate(NamedTuple):
    """A feature: its stage, whether it is on, and whether that can be changed."""

    stage: FeatureStage
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()
    """Features without which this one cannot be on; those that are always on are left out."""


class GateError(UserError):
    """Gates that cannot be set that way."""


class FeatureGates(dict[str, bool]):
    """All gates and their values, once the command line had its say."""

    def __init__(self, settings: Mapping[str, bool] | None = None) -> None:
        settings = settings or {}
        if mistakes := list(_mistakes(settings)):
            raise GateError(aggregated(mistakes))
        super().__init__(_resolved(settings))
        if mistakes := list(self._unmet_dependencies()):
            raise GateError(aggregated(mistakes))
        self.warnings = (*_warnings(settings), *self._not_followed())
        """Remarks on gates that will be removed, and on those that change nothing here."""

    @classmethod
    def parse(cls, given: Mapping[str, Sequence[str]]) -> FeatureGates:
        """From the flag's value: `Gate=true` texts by component, which is `kube` or nothing."""
        if "" in given and COMPONENT in given:
            raise GateError(
                "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
            )
        settings: dict[str, bool] = {}
        for component, texts in given.items():
            if component not in ("", COMPONENT):
                raise GateError(f"component not registered: {component}")
            for text in texts:
                settings.update([_setting(text)] if text else [])
        return cls(settings)

    def _not_followed(self) -> Iterator[str]:
        names = [name for name in NOT_FOLLOWED if self[name] != GATES[name].default]
        if names:
            yield f"feature gates that kube-scheduler follows, but kubesched does not: {', '.join(names)}"

    def _unmet_dependencies(self) -> Iterator[str]:
        for name, gate in GATES.items():
            unmet = [needed for needed in gate.needs if not self[needed]]
            if self[name] and unmet:
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(unmet)}]"


def _setting(text: str) -> tuple[str, bool]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise GateError(f"missing bool value for {name}")
    try:
        return name, parse_bool(value)
    except ValueError as error:
        raise GateError(f"invalid value of {name}={value}, err: {error}") from None


def _mistakes(settings: Mapping[str, bool]) -> Iterator[str]:
    for name, value in settings.items():
        gate = GATES.get(name)
        if gate is None:
            yield f"unrecognized feature gate: {name}"
            return
        if gate.locked and gate.default != value:
            shown, locked = str(value).lower(), str(gate.default).lower()
            yield f"cannot set feature gate {name} to {shown}, feature is locked to {locked}"


def _resolved(settings: Mapping[str, bool]) -> dict[str, bool]:
    """The value of every gate. A gate that is set by name goes before AllAlpha and AllBeta."""
    values = {name: gate.default for name, gate in GATES.items()}
    for all_of_them, stage in ALL_OF_A_STAGE.items():
        if all_of_them in settings:
            values.update((name, settings[all_of_them]) for name, gate in GATES.items() if gate.stage is stage)
    return {**values, **settings}


def _warnings(settings: Mapping[str, bool]) -> Iterator[str]:
    for name in settings:
        stage = GATES[name].stage
        if name not in ALL_OF_A_STAGE and stage in (FeatureStage.GA, FeatureStage.DEPRECATED):
            called = "GA" if stage is FeatureStage.GA else "deprecated"
            yield f"setting {called} feature gate {name}: it will be removed in a future release"


ALL_OF_A_STAGE = {"AllAlpha": FeatureStage.ALPHA, "AllBeta": FeatureStage.BETA}

NOT_FOLLOWED = (
    "CoordinatedLeaderElection",
    "DRADeviceTaintRules",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
)
"""Gates that are off by default, and that change what kube-scheduler does where they are turned on."""


def _table() -> Iterator[tuple[str, Gate]]:
    """The rows of feature_gates.tsv, which tools/feature_gates.py writes from upstream's lists."""
    text = files(__package__).joinpath("feature_gates.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        name, stage, default, locked, needs = line.split("\t")
        gate = Gate(FeatureStage(stage.replace("GA", "")), default == "true", locked == "locked", tuple(needs.split()))
        yield name, gate


GATES: Mapping[str, Gate] = dict(_table())


KUBERNETES_MINOR = (1, 36)
"""The release of Kubernetes whose behaviour this is."""
COMPATIBLE_VERSIONS = ("1.36.4", "1.36", "1.35")
"""The version of the binary, the one that it emulates, and the oldest that it gets on with."""
_GO_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}


class VersionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The version, as `--version=raw` and the build info metric show it."""

    major: str = str(KUBERNETES_MINOR[0])
    minor: str = str(KUBERNETES_MINOR[1])
    git_version: str = f"v{COMPATIBLE_VERSIONS[0]}+kubesched.{__version__}"
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    go_version: str = f"python{platform.python_version()}"
    """The name is Kubernetes'; the language is not."""
    compiler: str = platform.python_implementation()
    platform: str = f"{platform.system().lower()}/{_GO_NAMES.get(platform.machine(), platform.machine())}"


def version_text(wanted: str) -> str | None:
    """The text that `--version` prints for a value of the flag; None for `false`."""
    if wanted == "false":
        return None
    if wanted == "raw":
        return msgspec.json.encode(VersionInfo()).decode()
    return f"Kubernetes {wanted if wanted.startswith('v') else VersionInfo().git_version}"

"""Feature gates as a command line sets them, and the version that the daemon reports."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from kubesched import __version__
from kubesched.api.errors import UserError, aggregated
from kubesched.api.release import NEWEST, V1_36, Release
from kubesched.config.gates import FeatureStage, Gate, gates_of
from kubesched.daemon.flag_values import parse_bool

COMPONENT = "kube"


class ReleaseSource(StrEnum):
    """Where the daemon has the release from that it follows."""

    FLAG = "emulated-version"
    SERVER = "server"
    NEWEST = "newest"
    """Nothing: the API server is of another release, or keeps its version to itself, or could not be reached."""


class GateError(UserError):
    """Gates that cannot be set that way."""


class FeatureGates(dict[str, bool]):
    """All gates of a release, with the values that the command line gives them."""

    def __init__(self, settings: Mapping[str, bool] | None = None, release: Release = V1_36) -> None:
        settings = settings or {}
        self.release = release
        self.definitions = gates = gates_of(release)
        if mistakes := list(_mistakes(settings, gates)):
            raise GateError(aggregated(mistakes))
        super().__init__(_resolve(settings, gates))
        if mistakes := list(self._unmet_dependencies()):
            raise GateError(aggregated(mistakes))
        self.warnings = tuple(_warnings(settings, gates))
        """Remarks on gates that will be removed, and on those that change nothing here."""
        if ignored := [name for name in NOT_FOLLOWED if name in gates and self[name] != gates[name].default]:
            remark = f"feature gates that kube-scheduler follows, but kubesched does not: {', '.join(ignored)}"
            self.warnings += (remark,)

    @classmethod
    def parse(cls, flag: Mapping[str, Sequence[str]], release: Release = V1_36) -> FeatureGates:
        """From the flag's value: `Gate=true` texts by component, which is `kube` or nothing."""
        return cls(gate_settings(flag), release)

    def _unmet_dependencies(self) -> Iterator[str]:
        for name, gate in self.definitions.items():
            unmet = [needed for needed in gate.needs if not self[needed]]
            if self[name] and unmet:
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(unmet)}]"


def gate_settings(flag: Mapping[str, Sequence[str]]) -> dict[str, bool]:
    """The values that a flag gives to gates, whether a release has the gate or not. Raises GateError."""
    if "" in flag and COMPONENT in flag:
        raise GateError("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    settings: dict[str, bool] = {}
    for component, texts in flag.items():
        if component not in ("", COMPONENT):
            raise GateError(f"component not registered: {component}")
        for text in texts:
            if text:
                name, value = _setting(text)
                settings[name] = value
    return settings


def _setting(text: str) -> tuple[str, bool]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise GateError(f"missing bool value for {name}")
    try:
        return name, parse_bool(value)
    except ValueError as error:
        raise GateError(f"invalid value of {name}={value}, err: {error}") from None


def _mistakes(settings: Mapping[str, bool], gates: Mapping[str, Gate]) -> Iterator[str]:
    for name, value in settings.items():
        gate = gates.get(name)
        if gate is None:
            yield f"unrecognized feature gate: {name}"
            return
        if gate.locked and gate.default != value:
            default = str(gate.default).lower()
            yield f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {default}"


def _resolve(settings: Mapping[str, bool], gates: Mapping[str, Gate]) -> dict[str, bool]:
    """The value of every gate. A gate that is set by name goes before AllAlpha and AllBeta."""
    values = {name: gate.default for name, gate in gates.items()}
    for all_of_them, stage in ALL_OF_A_STAGE.items():
        if all_of_them in settings:
            values.update((name, settings[all_of_them]) for name, gate in gates.items() if gate.stage is stage)
    return {**values, **settings}


def _warnings(settings: Mapping[str, bool], gates: Mapping[str, Gate]) -> Iterator[str]:
    for name in settings:
        stage = gates[name].stage
        if name not in ALL_OF_A_STAGE and stage in (FeatureStage.GA, FeatureStage.DEPRECATED):
            adjective = "GA" if stage is FeatureStage.GA else "deprecated"
            yield f"setting {adjective} feature gate {name}: it will be removed in a future release"


ALL_OF_A_STAGE = {"AllAlpha": FeatureStage.ALPHA, "AllBeta": FeatureStage.BETA}

NOT_FOLLOWED = (
    "CompositePodGroup",
    "CoordinatedLeaderElection",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "InPlacePodVerticalScalingSchedulerPreemption",
)
"""Gates that are off by default, and that change what kube-scheduler does where they are turned on."""

GATES = gates_of(V1_36)

_GO_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}


class VersionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The version, as `--version=raw` and the build info metric show it."""

    major: str
    minor: str
    git_version: str
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    go_version: str = f"python{platform.python_version()}"
    """The name is Kubernetes'; the language is not."""
    compiler: str = platform.python_implementation()
    platform: str = f"{platform.system().lower()}/{_GO_NAMES.get(platform.machine(), platform.machine())}"

    @classmethod
    def of(cls, release: Release) -> VersionInfo:
        major, minor = release.name.split(".")
        return cls(major, minor, f"v{release.version}+kubesched.{__version__}")


def version_text(flag: str) -> str | None:
    """The text that `--version` prints for a value of the flag; None for `false`."""
    if flag == "false":
        return None
    info = VersionInfo.of(NEWEST)
    if flag == "raw":
        return msgspec.json.encode(info).decode()
    return f"Kubernetes {flag if flag.startswith('v') else info.git_version}"

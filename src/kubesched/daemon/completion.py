"""From options to all that a scheduler runs with: the configuration, the feature gates, and remarks for the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kubesched import config
from kubesched.api.yaml import YamlError, documents
from kubesched.config import Features
from kubesched.config.configuration import API_VERSION, KIND
from kubesched.config.policy import translate
from kubesched.daemon.checks import OptionsError, mistakes_in, mistakes_in_logging
from kubesched.daemon.feature_gates import FeatureGates, GateError
from kubesched.daemon.flags.table import FLAGS
from kubesched.daemon.options import Options

POLICY_KEY = "policy.cfg"
"""Where in a config map the Policy is."""

_LEADER_ELECTION = {
    "leader-elect": "leaderElect",
    "leader-elect-lease-duration": "leaseDuration",
    "leader-elect-renew-deadline": "renewDeadline",
    "leader-elect-retry-period": "retryPeriod",
    "leader-elect-resource-lock": "resourceLock",
    "leader-elect-resource-name": "resourceName",
    "leader-elect-resource-namespace": "resourceNamespace",
}
_CLIENT_CONNECTION = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "contentType",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_TOP_LEVEL = {"profiling": "enableProfiling", "contention-profiling": "enableContentionProfiling"}


@dataclass(frozen=True, slots=True)
class PolicyConfigMap:
    """A config map that holds a legacy Policy, to be read once there is a client."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Completed:
    """All that is to be known before anything is started."""

    options: Options
    configuration: config.SchedulerConfiguration
    gates: FeatureGates
    policy: PolicyConfigMap | None = None
    """The Policy that is still to be read: `with_policy` takes its text."""
    warnings: tuple[str, ...] = ()
    """Remarks to be logged once each."""

    @property
    def master(self) -> str:
        """The API server's address, where it is not that of the kubeconfig. As upstream, --config does not undo it."""
        return self.options.master

    @property
    def elects(self) -> bool:
        """Nobody is to be elected where there is one replica only, or where nothing is bound."""
        return self.configuration.leader_election.leader_elect and not self.options.shadow

    @property
    def serves(self) -> bool:
        return self.options.secure_port != 0


def completed(options: Options) -> Completed:
    """Read what the options point to. OptionsError or ConfigError if something is wrong."""
    try:
        gates = FeatureGates.parse(options.feature_gates)
    except GateError as problem:
        raise OptionsError([str(problem)]) from None
    if mistakes := mistakes_in_logging(options, gates) or mistakes_in(options):
        raise OptionsError(mistakes)
    result = Completed(
        options=options,
        configuration=_configuration(options, Features.of(gates)),
        gates=gates,
        policy=_policy_config_map(options),
        warnings=(*options.warnings, *_ignored(options), *gates.warnings),
    )
    if result.policy is None and options.policy_config_file:
        text = _read(options.policy_config_file, "--policy-config-file")
        return with_policy(result, text, source=options.policy_config_file)
    return result


def with_policy(before: Completed, text: str, *, source: str) -> Completed:
    """The same with the profiles and extenders of a legacy Policy, which takes the place of all others."""
    translation = translate(text, source=source)
    configuration = msgspec.structs.replace(
        before.configuration,
        profiles=translation.configuration.profiles,
        extenders=translation.configuration.extenders,
    )
    notes = tuple(f"{source}: {note}" for note in translation.notes)
    return replace(before, configuration=configuration, policy=None, warnings=(*before.warnings, *notes))


def write_configuration(what: Completed) -> Path:
    """Do what --write-config-to asks for, and say where it was written."""
    file = Path(what.options.write_config_to)
    try:
        file.write_text(config.to_yaml(what.configuration))
    except OSError as problem:
        raise OptionsError([f"--write-config-to: {problem.strerror}: {file}"]) from None
    return file


def _configuration(options: Options, features: Features) -> config.SchedulerConfiguration:
    """A configuration file goes before all flags but those of leader election."""
    if not options.config:
        plain: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
        plain.update(_given(options, _TOP_LEVEL))
        plain["clientConnection"] = _given(options, _CLIENT_CONNECTION)
        plain["leaderElection"] = _given(options, _LEADER_ELECTION)
        return config.from_plain(plain, source="command line", features=features)
    text = _read(options.config, "--config")
    election = _given(options, _LEADER_ELECTION)
    if not election:
        return config.load(text, source=options.config, features=features)
    try:
        document = next(documents(text), None)
    except YamlError:
        return config.load(text, source=options.config, features=features)  # which words the complaint
    value = document.value if document else None
    if isinstance(value, dict) and isinstance(value.get("leaderElection") or {}, dict):
        value = {**value, "leaderElection": {**(value.get("leaderElection") or {}), **election}}
    return config.from_plain(value, source=options.config, features=features)


def _given(options: Options, fields: dict[str, str]) -> dict[str, Any]:
    """What the command line says, spelled as in a file."""
    found = {}
    for flag, field in fields.items():
        if flag in options.given:
            value = getattr(options, flag.replace("-", "_"))
            found[field] = str(value) if isinstance(value, config.Duration) else value
    return found


def _ignored(options: Options) -> list[str]:
    """Deprecated flags beside a configuration file: upstream drops them without a word."""
    if not options.config:
        return []
    names = sorted({*_TOP_LEVEL, *_CLIENT_CONNECTION} & options.given)
    return [f"--{name} is ignored: the file of --config decides" for name in names if not FLAGS.flags[name].warning]


def _policy_config_map(options: Options) -> PolicyConfigMap | None:
    """A config map goes before a file, unless the file is preferred."""
    if not options.policy_configmap or (options.use_legacy_policy_config and options.policy_config_file):
        return None
    return PolicyConfigMap(options.policy_configmap_namespace, options.policy_configmap)


def _read(file: str, flag: str) -> str:
    try:
        return Path(file).read_text()
    except OSError as problem:
        raise OptionsError([f"{flag}: {problem.strerror}: {file}"]) from None
    except UnicodeDecodeError:
        raise OptionsError([f"{flag}: not UTF-8 text: {file}"]) from None

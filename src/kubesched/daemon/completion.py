"""From options to all that a scheduler runs with: the configuration, the feature gates, and remarks for the log."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kubesched import config
from kubesched.api.errors import UserError
from kubesched.api.release import NEWEST, RELEASES, Release, release_of
from kubesched.config import Features
from kubesched.config.configuration import WrittenConfiguration
from kubesched.config.defaults import as_float32
from kubesched.config.policy import translate
from kubesched.daemon.checks import OptionsError, emulated_release, mistakes_in, mistakes_in_logging, read_text
from kubesched.daemon.feature_gates import FeatureGates, GateError, ReleaseSource
from kubesched.daemon.options import FLAGS, Options
from kubesched.daemon.tracing.configuration import TracingConfiguration, read_tracing_configuration
from kubesched.framework.plugin import PluginContext
from kubesched.framework.profile import Profile
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.recording import open_private

POLICY_KEY = "policy.cfg"
"""The key of a config map that holds the Policy."""

_LEADER_ELECTION = {
    name: name.removeprefix("leader-elect-").replace("-", "_") for name in FLAGS if name.startswith("leader-elect")
}
_CLIENT_CONNECTION = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_TOP_LEVEL = {"profiling": "enable_profiling", "contention-profiling": "enable_contention_profiling"}


@dataclass(frozen=True, slots=True)
class Completed:
    """Everything that the daemon is started with."""

    options: Options
    configuration: config.SchedulerConfiguration
    gates: FeatureGates
    release_source: ReleaseSource = ReleaseSource.NEWEST
    awaits_policy: bool = False
    """Whether the legacy Policy of --policy-configmap is still to be read: `with_policy` takes its text."""
    warnings: tuple[str, ...] = ()
    """Remarks to be logged once each."""
    tracing: TracingConfiguration | None = None
    """None: no attempt is traced, and nothing of OpenTelemetry is imported."""

    @property
    def elects(self) -> bool:
        """There is no election where there is one replica only, or where nothing is bound."""
        return self.configuration.leader_election.leader_elect and not self.options.shadow

    @property
    def serves(self) -> bool:
        return self.options.secure_port != 0 or self.options.ui_port != 0


def complete_options(options: Options, server_version: str = "") -> Completed:
    """Read the files that the options name, for the release of --emulated-version, else that of the API server, else
    the newest. OptionsError or ConfigError if something is wrong."""
    if emulated := emulated_release(options):
        return _complete(options, emulated, ReleaseSource.FLAG)
    served = release_of(server_version)
    return _complete(options, served or NEWEST, ReleaseSource.SERVER if served else ReleaseSource.NEWEST)


def completed_as_any(options: Options) -> Completed:
    """For the newest release for which the options are right, while that of the API server is not known."""
    try:
        return complete_options(options)
    except UserError:
        for release in reversed(RELEASES.values()):
            with contextlib.suppress(UserError):
                return _complete(options, release, ReleaseSource.NEWEST)
        raise


def _complete(options: Options, release: Release, source: ReleaseSource) -> Completed:
    try:
        gates = FeatureGates.parse(options.feature_gates, release)
    except GateError as error:
        raise OptionsError(str(error)) from None
    if mistakes := list(mistakes_in_logging(options, gates)) or mistakes_in(options, release):
        raise OptionsError(*mistakes)
    file = options.tracing_config_file
    result = Completed(
        options=options,
        configuration=_configuration(options, Features.of(gates, release)),
        gates=gates,
        release_source=source,
        # A config map goes before a file, unless the file is preferred.
        awaits_policy=bool(options.policy_configmap)
        and not (options.use_legacy_policy_config and options.policy_config_file),
        warnings=(*options.warnings, *_ignored_flag_warnings(options), *gates.warnings),
        tracing=read_tracing_configuration(read_text(file, "--tracing-config-file"), source=file) if file else None,
    )
    if not result.awaits_policy and options.policy_config_file:
        text = read_text(options.policy_config_file, "--policy-config-file")
        return with_policy(result, text, source=options.policy_config_file)
    return result


def with_policy(before: Completed, text: str, *, source: str) -> Completed:
    """The settings with the profiles and extenders of a legacy Policy, which replace all others."""
    translation = translate(text, source=source)
    configuration = msgspec.structs.replace(
        before.configuration,
        profiles=translation.configuration.profiles,
        extenders=translation.configuration.extenders,
    )
    notes = tuple(f"{source}: {note}" for note in translation.notes)
    return replace(before, configuration=configuration, awaits_policy=False, warnings=(*before.warnings, *notes))


def write_configuration(settings: Completed) -> Path:
    """Write the file of --write-config-to, and return its path. ProfileError for a profile that could not be run."""
    file = Path(settings.options.write_config_to)
    text = config.to_yaml(_as_run(settings.configuration))
    try:
        with open_private(str(file)) as stream:  # it has the keys of extenders
            stream.write(text)
    except OSError as error:
        raise OptionsError(f"--write-config-to: {error.strerror}: {file}") from None
    return file


def _as_run(configuration: config.SchedulerConfiguration) -> config.SchedulerConfiguration:
    """The configuration without the arguments of plugins that are not enabled."""
    registry = all_plugins()
    context = PluginContext(features=configuration.features, now=time.time)
    profiles = []
    for profile in configuration.profiles:
        Profile(profile, registry, context)  # raises ProfileError for plugins that are unknown, or enabled twice
        enabled = profile.plugins.enabled_names()
        used = {
            name: args for name, args in sorted(profile.plugin_config.items()) if name in enabled and args is not None
        }
        profiles.append(msgspec.structs.replace(profile, plugin_config=used))
    return msgspec.structs.replace(configuration, profiles=tuple(profiles))


def _configuration(options: Options, features: Features) -> config.SchedulerConfiguration:
    """A configuration file goes before all flags but those of leader election."""

    def with_election(completed: WrittenConfiguration) -> WrittenConfiguration:
        election = msgspec.structs.replace(completed.leader_election, **_given_values(options, _LEADER_ELECTION))
        return msgspec.structs.replace(completed, leader_election=election)

    def with_all(completed: WrittenConfiguration) -> WrittenConfiguration:
        connection = msgspec.structs.replace(completed.client_connection, **_given_values(options, _CLIENT_CONNECTION))
        connection = msgspec.structs.replace(connection, qps=as_float32(connection.qps))
        top_level = _given_values(options, _TOP_LEVEL)
        return msgspec.structs.replace(with_election(completed), client_connection=connection, **top_level)

    if not options.config:
        return config.default(features, source="command line", amend=with_all)
    text = read_text(options.config, "--config")
    return config.load(text, source=options.config, features=features, amend=with_election)


def _given_values(options: Options, fields: dict[str, str]) -> dict[str, Any]:
    """The values that the command line gives, by the fields of the configuration that they set."""
    return {field: getattr(options, FLAGS[flag].field) for flag, field in fields.items() if flag in options.given}


def _ignored_flag_warnings(options: Options) -> list[str]:
    """Remarks on flags that a configuration file overrules; kube-scheduler ignores them silently."""
    if not options.config:
        return []
    names = sorted({*_TOP_LEVEL, *_CLIENT_CONNECTION} & options.given)
    return [f"--{name} is ignored: the file of --config decides" for name in names if not FLAGS[name].warning]

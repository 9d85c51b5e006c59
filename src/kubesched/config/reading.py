"""From text to a valid configuration, or to an error that names every mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from kubesched.api.duration import Duration
from kubesched.api.schema import Hooks, Mistake, convert
from kubesched.api.yaml import YamlError, documents
from kubesched.config.args import ARGS
from kubesched.config.configuration import (
    API_VERSION,
    KIND,
    ProfileConfig,
    SchedulerConfiguration,
    WrittenConfiguration,
    WrittenValues,
)
from kubesched.config.defaults import complete
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.config.mistakes import InvalidConfigError, UnreadableConfigError
from kubesched.config.validation import validate

Amendment: TypeAlias = Callable[[WrittenConfiguration], WrittenConfiguration]
"""Changes settings after the file and the defaults: `0` and the empty text do not mean a default there."""

_HOOKS: Hooks = {Duration: Duration.parse}
_KIND_LINE = re.compile(r"^kind: *[\"']?([A-Za-z]+)[\"']? *(?:#.*)?$", re.MULTILINE)
_NEW_FIELD = "podGroupPostFilter"
_OLD_VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3")


def load(
    text: str,
    *,
    source: str = "<config>",
    features: Features = DEFAULT_FEATURES,
    amend: Amendment | None = None,
) -> SchedulerConfiguration:
    """The configuration in a YAML or JSON text. `source` is what errors call it.

    As kube-scheduler does, this reads the first document only.
    """
    try:
        document = next(documents(text, strict=True), None)
    except YamlError as error:
        other = _other_kind(text)
        mistake = Mistake("kind", f'expected "{KIND}", got "{other}"') if other else Mistake("", str(error))
        raise UnreadableConfigError([mistake], source) from error
    return from_plain(document.value if document else None, source=source, features=features, amend=amend)


def _other_kind(text: str) -> str:
    """The kind that the text names, if it is another: an error about its YAML would mislead."""
    kind_line = _KIND_LINE.search(text)
    return kind_line[1] if kind_line and kind_line[1] != KIND else ""


def from_plain(
    value: Any,
    *,
    source: str = "<config>",
    features: Features = DEFAULT_FEATURES,
    amend: Amendment | None = None,
) -> SchedulerConfiguration:
    """The configuration in plain values, as parsed from YAML or JSON."""
    written, mistakes = _read(value)
    if written is not None and not features.release.group_post_filter:
        mistakes += _unknown_fields(value)
    if written is None or mistakes:
        raise UnreadableConfigError(mistakes, source)
    configuration = from_written(written, source=source, features=features, amend=amend)
    return replace(configuration, written=WrittenValues(value))


def read_again(configuration: SchedulerConfiguration, features: Features) -> SchedulerConfiguration:
    """The same file, read under other gates or for another release. Raises ConfigError."""
    plain = configuration.written.plain
    return default(features) if plain is None else from_plain(plain, features=features)


def from_written(
    written: WrittenConfiguration,
    *,
    source: str = "<config>",
    features: Features = DEFAULT_FEATURES,
    amend: Amendment | None = None,
) -> SchedulerConfiguration:
    """The configuration with its defaults filled in, if it is valid."""
    completed = complete(written, features)
    if amend is not None:
        completed = amend(completed)
    if mistakes := list(validate(completed, features)):
        raise InvalidConfigError(mistakes, source)
    return _finish(completed, features)


def default(
    features: Features = DEFAULT_FEATURES, *, source: str = "<config>", amend: Amendment | None = None
) -> SchedulerConfiguration:
    """The configuration of an empty file."""
    return from_written(WrittenConfiguration(), source=source, features=features, amend=amend)


def _read(value: Any) -> tuple[WrittenConfiguration | None, list[Mistake]]:
    if not isinstance(value, dict):
        return None, [Mistake("", f"expected a {KIND}, got {'nothing' if value is None else 'no mapping'}")]
    if mistakes := _kind_mistakes(value):
        return None, mistakes
    args_mistakes: list[Mistake] = []
    typed = _with_args_in_profiles(_without_kind(value), args_mistakes)
    written, mistakes = convert(typed, WrittenConfiguration, unknown="error", shape_only=True, hooks=_HOOKS)
    return written, mistakes + args_mistakes


def _unknown_fields(value: dict[str, Any]) -> list[Mistake]:
    """Fields that the release does not know yet."""
    return [
        Mistake(f"profiles[{i}].plugins.{_NEW_FIELD}", "unknown field")
        for i, profile in enumerate(value.get("profiles") or ())
        if profile and _NEW_FIELD in (profile.get("plugins") or {})
    ]


def _kind_mistakes(value: dict[str, Any]) -> list[Mistake]:
    mistakes = []
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        text = value.get(field)
        if not text:
            mistakes.append(Mistake(field, f'required, expected "{expected}"'))
        elif text != expected:
            mistakes.append(Mistake(field, f'expected "{expected}", got {json.dumps(text)}{_advice(text)}'))
    return mistakes


def _advice(version: Any) -> str:
    group, _, name = str(version).partition("/")
    is_old = group == API_VERSION.partition("/")[0] and name in _OLD_VERSIONS
    return "; Kubernetes has removed that version" if is_old else ""


def _without_kind(value: dict[str, Any]) -> dict[str, Any]:
    return {key: content for key, content in value.items() if key not in ("apiVersion", "kind")}


def _with_args_in_profiles(value: dict[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    """The plain configuration with typed arguments for in-tree plugins. `convert` finds the mistakes in all else."""
    profiles = value.get("profiles")
    if not isinstance(profiles, list):
        return value
    typed = [_with_args(profile, f"profiles[{i}].pluginConfig", mistakes) for i, profile in enumerate(profiles)]
    return {**value, "profiles": typed}


def _with_args(profile: Any, path: str, mistakes: list[Mistake]) -> Any:
    entries = profile.get("pluginConfig") if isinstance(profile, dict) else None
    if not isinstance(entries, list):
        return profile
    typed = []
    for i, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and name in ARGS:
            args, faults = _read_args(entry.get("args"), ARGS[name], f"{path}[{i}].args")
            mistakes += faults
            entry = {**entry, "args": args}
        typed.append(entry)
    return {**profile, "pluginConfig": typed}


def _read_args(value: Any, type_: type[msgspec.Struct], path: str) -> tuple[Any, list[Mistake]]:
    if value is None:
        value = {}
    if not isinstance(value, dict):
        return convert(value, type_, path=path, unknown="error", shape_only=True)
    mistakes = _args_kind_mistakes(value, type_.__name__, path)
    # Durations elsewhere refuse null; here they are optional.
    nulls = {key for key in type_.__struct_encode_fields__ if value.get(key) is None}
    fields = {key: content for key, content in _without_kind(value).items() if key not in nulls}
    args, faults = convert(fields, type_, path=path, unknown="error", shape_only=True, hooks=_HOOKS)
    return args, mistakes + faults


def _args_kind_mistakes(value: dict[str, Any], kind: str, path: str) -> list[Mistake]:
    """Arguments need not have an apiVersion and a kind; if they have, these must be right."""
    mistakes = []
    group = API_VERSION.partition("/")[0]
    if value.get("apiVersion") not in (None, "", "/", f"{group}/", API_VERSION):
        problem = f'expected "{API_VERSION}", got {json.dumps(value["apiVersion"])}'
        mistakes.append(Mistake(f"{path}.apiVersion", problem))
    if value.get("kind") not in (None, "", kind):
        mistakes.append(Mistake(f"{path}.kind", f'expected "{kind}", got {json.dumps(value["kind"])}'))
    return mistakes


def _finish(completed: WrittenConfiguration, features: Features) -> SchedulerConfiguration:
    shared = msgspec.structs.asdict(completed)
    shared["profiles"] = tuple(
        ProfileConfig(
            scheduler_name=profile.scheduler_name or "",
            percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
            plugins=profile.plugins,
            plugin_config={entry.name: entry.args for entry in profile.plugin_config},
        )
        for profile in completed.profiles
    )
    return SchedulerConfiguration(**shared, features=features)

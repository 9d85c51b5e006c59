"""The command line of `kubesched run`: the flags of flags.tsv, read as by pflag, and one record with their values."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import msgspec

from kubesched.api.duration import Duration
from kubesched.api.errors import UserError
from kubesched.daemon.flag_values import TYPES, CertKey, FlagType, ModuleLevel


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, with its help."""

    name: str
    type: FlagType
    group: str
    help: str
    short: str = ""
    warning: str = ""
    """For a flag that is accepted and does nothing: why."""

    @property
    def field(self) -> str:
        """The name of its value among the options."""
        return self.name.replace("-", "_")

    @property
    def spelled(self) -> str:
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


class FlagError(UserError):
    """A command line that cannot be understood."""


def _table() -> Iterator[Flag]:
    text = files(__package__).joinpath("flags.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        group, name, short, type_, help, warning = line.split("\t")
        yield Flag(name, TYPES[type_], group, help, short, warning)


FLAGS = {flag.name: flag for flag in _table()}
"""Every flag of kube-scheduler with its group, and those that only kubesched has: the rows of flags.tsv."""
_SHORT = {flag.short: flag for flag in FLAGS.values() if flag.short}


def parse_flags(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The values of the flags that were given, by flag name, and all that is no flag."""
    values: dict[str, Any] = {}
    positional: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            positional += remaining
        elif argument.startswith("--"):
            _take_long(argument, remaining, values)
        elif argument.startswith("-") and argument != "-":
            _take_shorts(argument, remaining, values)
        else:
            positional.append(argument)
    return values, positional


def _take_long(argument: str, remaining: Iterator[str], values: dict[str, Any]) -> None:
    name, equals, text = argument[2:].partition("=")
    if not name or name.startswith("-"):
        raise FlagError(f"bad flag syntax: {argument}")
    flag = FLAGS.get(name.replace("_", "-"))
    if flag is None:
        near = difflib.get_close_matches(name, FLAGS, n=1, cutoff=0.75)
        raise FlagError(f"unknown flag: --{name}" + (f"; did you mean --{near[0]}?" if near else ""))
    if not equals:
        text = _value_of(flag, remaining, f"flag needs an argument: --{name}")
    _take(flag, text, values)


def _take_shorts(argument: str, remaining: Iterator[str], values: dict[str, Any]) -> None:
    """`-v2`, `-v=2`, `-v 2`; several short flags may stand together as long as they need no value."""
    rest = argument[1:]
    while rest:
        letter, rest = rest[0], rest[1:]
        flag = _SHORT.get(letter)
        if flag is None:
            raise FlagError(f"unknown shorthand flag: {letter!r} in {argument}")
        if rest.startswith("="):
            text, rest = rest[1:], ""
        elif flag.type.without_value is not None:
            text = flag.type.without_value
        elif rest:
            text, rest = rest, ""
        else:
            text = _value_of(flag, remaining, f"flag needs an argument: {letter!r} in {argument}")
        _take(flag, text, values)


def _value_of(flag: Flag, remaining: Iterator[str], complaint: str) -> str:
    if flag.type.without_value is not None:
        return flag.type.without_value
    text = next(remaining, None)
    if text is None:
        raise FlagError(complaint)
    return text


def _take(flag: Flag, text: str, values: dict[str, Any]) -> None:
    try:
        value = flag.type.parse(text)
    except ValueError as error:
        raise FlagError(f'invalid argument "{text}" for "{flag.spelled}" flag: {error}') from None
    if flag.type.add is not None and flag.name in values:
        value = flag.type.add(values[flag.name], value)
    values[flag.name] = value


_NARROW = 24
"""Columns for help below which it is not wrapped."""

LONG = """\
Assigns pods to nodes: kube-scheduler's decisions, flags, endpoints and metrics, on a columnar engine that looks at
every node. See https://kubernetes.io/docs/concepts/scheduling-eviction/ about scheduling."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The value of every flag, and which of them were given. Fields are named as their flags."""

    config: str = ""
    master: str = ""
    write_config_to: str = ""

    bind_address: str = "0.0.0.0"
    cert_dir: str = ""
    disable_http2_serving: bool = False
    http2_max_streams_per_connection: int = 0
    permit_address_sharing: bool = False
    permit_port_sharing: bool = False
    secure_port: int = 10259
    tls_cert_file: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    tls_curve_preferences: tuple[int, ...] = ()
    tls_min_version: str = ""
    tls_private_key_file: str = ""
    tls_sni_cert_key: tuple[CertKey, ...] = ()

    authentication_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    authentication_token_webhook_cache_ttl: Duration = Duration(10)
    authentication_tolerate_lookup_failure: bool = True
    client_ca_file: str = ""
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_client_ca_file: str = ""
    requestheader_extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)
    requestheader_group_headers: tuple[str, ...] = ("x-remote-group",)
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ("x-remote-user",)

    authorization_always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    authorization_kubeconfig: str = ""
    authorization_webhook_cache_authorized_ttl: Duration = Duration(10)
    authorization_webhook_cache_unauthorized_ttl: Duration = Duration(10)

    contention_profiling: bool = True
    kube_api_burst: int = 100
    kube_api_content_type: str = "application/vnd.kubernetes.protobuf"
    kube_api_qps: float = 50
    kubeconfig: str = ""
    pod_max_in_unschedulable_pods_duration: Duration = Duration(300)
    profiling: bool = True

    leader_elect: bool = True
    leader_elect_lease_duration: Duration = Duration(15)
    leader_elect_renew_deadline: Duration = Duration(10)
    leader_elect_resource_lock: str = "leases"
    leader_elect_resource_name: str = "kube-scheduler"
    leader_elect_resource_namespace: str = "kube-system"
    leader_elect_retry_period: Duration = Duration(2)

    emulated_version: tuple[str, ...] = ()
    feature_gates: Mapping[str, tuple[str, ...]] = {}
    min_compatibility_version: tuple[str, ...] = ()

    allow_metric_labels: Mapping[str, str] = {}
    allow_metric_labels_manifest: str = ""
    disabled_metrics: tuple[str, ...] = ()
    show_hidden_metrics_for_version: str = ""

    log_flush_frequency: Duration = Duration(5)
    log_json_info_buffer_size: int = 0
    log_json_split_stream: bool = False
    log_text_info_buffer_size: int = 0
    log_text_split_stream: bool = False
    logging_format: str = "text"
    v: int = 0
    vmodule: tuple[ModuleLevel, ...] = ()

    policy_config_file: str = ""
    policy_configmap: str = ""
    policy_configmap_namespace: str = "kube-system"
    use_legacy_policy_config: bool = False

    decision_budget: Duration = Duration(1)
    record: str = ""
    record_annotations: bool = False
    shadow: bool = False
    shadow_file: str = ""
    tracing_config_file: str = ""
    ui_port: int = 0

    help: bool = False
    version: str = "false"

    given: frozenset[str] = frozenset()
    """The names of the flags that the command line has."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A remark for each flag given that has no effect."""
        flags = (FLAGS[name] for name in sorted(self.given))
        return tuple(f"--{flag.name} has no effect: {flag.warning}" for flag in flags if flag.warning)

    def shown(self) -> dict[str, str]:
        """The value of every flag as text, as /flagz has it."""
        return {flag.name: flag.type.show(getattr(self, flag.field)) for flag in FLAGS.values()}


class ArgumentsError(FlagError):
    """Something on the command line that is no flag."""


def parse_options(arguments: Sequence[str], command: str = "kubesched run") -> Options:
    """The options on a command line; FlagError if there is a mistake."""
    values, positional = parse_flags(arguments)
    if any(positional) and not values.get("help"):
        listed = " ".join(f'"{argument}"' for argument in positional)
        raise ArgumentsError(f'"{command}" does not take any arguments, got [{listed}]')
    fields = {FLAGS[name].field: value for name, value in values.items()}
    return Options(**fields, given=frozenset(values))


def usage(command: str = "kubesched run", width: int = 0) -> str:
    """How to call the command, and all its flags by group, each with its default. Width 0 never wraps."""
    groups: dict[str, list[Flag]] = {}
    for flag in FLAGS.values():
        groups.setdefault(flag.group, []).append(flag)
    sections = (_section(group, sorted(flags, key=lambda flag: flag.name), width) for group, flags in groups.items())
    return f"Usage:\n  {command} [flags]\n" + "".join(sections)


def _section(group: str, flags: list[Flag], width: int) -> str:
    names = [_spell(flag) for flag in flags]
    column = max(map(len, names)) + 3
    lines = []
    for flag, name in zip(flags, names):
        text = flag.help + _default(flag)
        if width - column > _NARROW:
            text = "\n".join(textwrap.wrap(text, width - column, break_on_hyphens=False))
        lines.append(name.ljust(column) + text.replace("\n", "\n" + " " * column))
    return f"\n{group} flags:\n\n" + "\n".join(lines) + "\n"


def _spell(flag: Flag) -> str:
    name = f"  -{flag.short}, --{flag.name}" if flag.short else f"      --{flag.name}"
    if flag.type.without_value is None:
        return f"{name} {flag.type.name}"
    return name if flag.type.name == "bool" else f"{name} {flag.type.name}[={flag.type.without_value}]"


def _default(flag: Flag) -> str:
    """The default as usage shows it; empty for zero values, as pflag does."""
    shown = flag.type.show(getattr(Options(), flag.field))
    if flag.name == "version" or shown in ("", "false", "0") or (shown == "[]" and flag.type.name == "strings"):
        return ""
    return f' (default "{shown}")' if flag.type.is_quoted else f" (default {shown})"


def help_text(command: str = "kubesched run", width: int = 0) -> str:
    """What `--help` prints."""
    return f"{LONG}\n\n{usage(command, width)}"

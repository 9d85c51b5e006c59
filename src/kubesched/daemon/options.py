"""What a command line of `kubesched run` amounts to: one record with a field per flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kubesched.api.duration import Duration
from kubesched.daemon.flags.parsing import FLAGS, FlagError, sections
from kubesched.daemon.flags.values import CertKey, ModuleLevel

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
    ui_port: int = 0

    help: bool = False
    version: str = "false"

    given: frozenset[str] = frozenset()
    """The names of the flags that the command line has."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A remark for each flag given that has no effect."""
        flags = (FLAGS.flags[name] for name in sorted(self.given))
        return tuple(f"--{flag.name} has no effect: {flag.warning}" for flag in flags if flag.warning)

    def shown(self) -> dict[str, str]:
        """The value of every flag as text, as /flagz has it."""
        return {flag.name: flag.type.show(getattr(self, flag.field)) for flag in FLAGS.flags.values()}


class ArgumentsError(FlagError):
    """Something on the command line that is no flag."""


def parse_options(arguments: Sequence[str], command: str = "kubesched run") -> Options:
    """The options on a command line; FlagError if there is a mistake."""
    values, positional = FLAGS.parse(arguments)
    if any(positional) and not values.get("help"):
        listed = " ".join(f'"{each}"' for each in positional)
        raise ArgumentsError(f'"{command}" does not take any arguments, got [{listed}]')
    fields = {FLAGS.flags[name].field: value for name, value in values.items()}
    return Options(**fields, given=frozenset(values))


def usage(command: str = "kubesched run", width: int = 0) -> str:
    """How to call the command, and all its flags."""
    defaults: dict[str, Any] = {flag.name: getattr(Options(), flag.field) for flag in FLAGS.flags.values()}
    return f"Usage:\n  {command} [flags]\n" + sections(FLAGS.flags.values(), {**defaults, "version": ""}, width)


def help_text(command: str = "kubesched run", width: int = 0) -> str:
    """What `--help` prints."""
    return f"{LONG}\n\n{usage(command, width)}"

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.duration import Duration
from kubesched.daemon.flag_values import CertKey, ModuleLevel
from kubesched.daemon.options import FLAGS, ArgumentsError, FlagError, Options, help_text, parse_options, usage

# What `kube-scheduler --help` of v1.36 shows: group, flag, short form, type, default.
UPSTREAM = """
Misc | config |  | string |
Misc | master |  | string |
Misc | write-config-to |  | string |
Secure serving | bind-address |  | ip | 0.0.0.0
Secure serving | cert-dir |  | string |
Secure serving | disable-http2-serving |  | bool |
Secure serving | http2-max-streams-per-connection |  | int |
Secure serving | permit-address-sharing |  | bool |
Secure serving | permit-port-sharing |  | bool |
Secure serving | secure-port |  | int | 10259
Secure serving | tls-cert-file |  | string |
Secure serving | tls-cipher-suites |  | strings |
Secure serving | tls-curve-preferences |  | int32Slice | []
Secure serving | tls-min-version |  | string |
Secure serving | tls-private-key-file |  | string |
Secure serving | tls-sni-cert-key |  | namedCertKey | []
Authentication | authentication-kubeconfig |  | string |
Authentication | authentication-skip-lookup |  | bool |
Authentication | authentication-token-webhook-cache-ttl |  | duration | 10s
Authentication | authentication-tolerate-lookup-failure |  | bool | true
Authentication | client-ca-file |  | string |
Authentication | requestheader-allowed-names |  | strings |
Authentication | requestheader-client-ca-file |  | string |
Authentication | requestheader-extra-headers-prefix |  | strings | [x-remote-extra-]
Authentication | requestheader-group-headers |  | strings | [x-remote-group]
Authentication | requestheader-uid-headers |  | strings |
Authentication | requestheader-username-headers |  | strings | [x-remote-user]
Authorization | authorization-always-allow-paths |  | strings | [/healthz,/readyz,/livez]
Authorization | authorization-kubeconfig |  | string |
Authorization | authorization-webhook-cache-authorized-ttl |  | duration | 10s
Authorization | authorization-webhook-cache-unauthorized-ttl |  | duration | 10s
Deprecated | contention-profiling |  | bool | true
Deprecated | kube-api-burst |  | int32 | 100
Deprecated | kube-api-content-type |  | string | "application/vnd.kubernetes.protobuf"
Deprecated | kube-api-qps |  | float32 | 50
Deprecated | kubeconfig |  | string |
Deprecated | pod-max-in-unschedulable-pods-duration |  | duration | 5m0s
Deprecated | profiling |  | bool | true
Leader election | leader-elect |  | bool | true
Leader election | leader-elect-lease-duration |  | duration | 15s
Leader election | leader-elect-renew-deadline |  | duration | 10s
Leader election | leader-elect-resource-lock |  | string | "leases"
Leader election | leader-elect-resource-name |  | string | "kube-scheduler"
Leader election | leader-elect-resource-namespace |  | string | "kube-system"
Leader election | leader-elect-retry-period |  | duration | 2s
Feature gate | emulated-version |  | strings |
Feature gate | feature-gates |  | colonSeparatedMultimapStringString |
Feature gate | min-compatibility-version |  | strings |
Metrics | allow-metric-labels |  | stringToString | []
Metrics | allow-metric-labels-manifest |  | string |
Metrics | disabled-metrics |  | strings |
Metrics | show-hidden-metrics-for-version |  | string |
Logs | log-flush-frequency |  | duration | 5s
Logs | log-json-info-buffer-size |  | quantity |
Logs | log-json-split-stream |  | bool |
Logs | log-text-info-buffer-size |  | quantity |
Logs | log-text-split-stream |  | bool |
Logs | logging-format |  | string | "text"
Logs | v | v | Level |
Logs | vmodule |  | pattern=N,... |
Global | help | h | bool |
Global | version |  | version[=true] |
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in UPSTREAM.strip().splitlines()]


@pytest.mark.parametrize(("group", "name", "short", "type_", "default"), ROWS, ids=[row[1] for row in ROWS])
def test_flag_is_shown_as_upstream_shows_it(group: str, name: str, short: str, type_: str, default: str) -> None:
    section = usage().split(f"\n{group} flags:\n", 1)[1].split(" flags:\n", 1)[0]
    start = f"  -{short}, --{name}" if short else f"      --{name}"
    shown_type = "" if type_ == "bool" else f" {type_}"
    line = next(line for line in section.splitlines() if re.match(rf"{re.escape(start + shown_type)}(   | *$)", line))
    found = re.search(r" \(default (.*)\)$", line)
    assert (found[1] if found else "") == default


def test_every_flag_has_an_option_of_its_name() -> None:
    assert {flag.field for flag in FLAGS.values()} == set(Options.__struct_fields__) - {"given"}


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("--secure-port 0", "secure_port", 0),
        ("--secure_port=12", "secure_port", 12),
        ("--leader-elect", "leader_elect", True),
        ("--leader-elect=false", "leader_elect", False),
        ("--leader-elect=F", "leader_elect", False),
        ("-v 2", "v", 2),
        ("-v=2", "v", 2),
        ("-v2", "v", 2),
        ("--v=3 --v=4", "v", 4),
        ("--bind-address ::1", "bind_address", "::1"),
        ("--kube-api-qps 1e3", "kube_api_qps", 1000.0),
        ("--kube-api-burst 0x10", "kube_api_burst", 16),
        ("--leader-elect-lease-duration 1m30s", "leader_elect_lease_duration", Duration(90)),
        ("--tls-cipher-suites a,b --tls-cipher-suites c", "tls_cipher_suites", ("a", "b", "c")),
        ("--requestheader-group-headers X-Group", "requestheader_group_headers", ("X-Group",)),
        ("--requestheader-group-headers=", "requestheader_group_headers", ()),
        ("--tls-curve-preferences 23,24", "tls_curve_preferences", (23, 24)),
        ("--log-text-info-buffer-size 2Ki", "log_text_info_buffer_size", 2048),
        ("--vmodule queue=4,bind*=5", "vmodule", (ModuleLevel("queue", 4), ModuleLevel("bind*", 5))),
        ('--allow-metric-labels "m,l=a,b"', "allow_metric_labels", {"m,l": "a,b"}),
        ("--feature-gates A=true,kube:B=false", "feature_gates", {"": ("A=true",), "kube": ("B=false",)}),
        ("--version", "version", "true"),
        ("--version=raw", "version", "raw"),
        ("--version=v9.9.9", "version", "v9.9.9"),
        (
            "--tls-sni-cert-key a.crt,a.key --tls-sni-cert-key b.crt,b.key:*.x.org,x.org",
            "tls_sni_cert_key",
            (CertKey("a.crt", "a.key"), CertKey("b.crt", "b.key", ("*.x.org", "x.org"))),
        ),
    ],
)
def test_value_is_read_as_pflag_reads_it(line: str, field: str, value: object) -> None:
    assert getattr(parse_options(line.split()), field) == value


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--nonsense", "unknown flag: --nonsense"),
        ("---config", "bad flag syntax: ---config"),
        ("--=x", "bad flag syntax: --=x"),
        ("-x", "unknown shorthand flag: 'x' in -x"),
        ("--config", "flag needs an argument: --config"),
        ("-v", "flag needs an argument: 'v' in -v"),
        (
            "--secure-port x",
            'invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax',
        ),
        (
            "--kube-api-burst 3000000000",
            'invalid argument "3000000000" for "--kube-api-burst" flag: '
            'strconv.ParseInt: parsing "3000000000": value out of range',
        ),
        ("-v=-1", 'invalid argument "-1" for "-v, --v" flag: strconv.ParseUint: parsing "-1": invalid syntax'),
        (
            "--leader-elect=maybe",
            'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        ("--bind-address x", 'invalid argument "x" for "--bind-address" flag: failed to parse IP: "x"'),
        (
            "--log-flush-frequency 5",
            'invalid argument "5" for "--log-flush-frequency" flag: time: missing unit in duration "5"',
        ),
        (
            "--log-flush-frequency soon",
            'invalid argument "soon" for "--log-flush-frequency" flag: time: invalid duration "soon"',
        ),
        (
            "--kube-api-qps 1e39",
            'invalid argument "1e39" for "--kube-api-qps" flag: strconv.ParseFloat: parsing "1e39": value out of range',
        ),
        ("--vmodule a", 'invalid argument "a" for "--vmodule" flag: "a" does not have the pattern=N format'),
        (
            "--tls-sni-cert-key a",
            'invalid argument "a" for "--tls-sni-cert-key" flag: '
            "expected comma separated certificate and key file paths",
        ),
        (
            "--allow-metric-labels x",
            'invalid argument "x" for "--allow-metric-labels" flag: x must be formatted as key=value',
        ),
    ],
)
def test_mistake_is_worded_as_pflag_words_it(line: str, complaint: str) -> None:
    with pytest.raises(FlagError) as caught:
        parse_options(line.split())
    assert str(caught.value) == complaint


@pytest.mark.parametrize("line", ["run me", "-v 2 me", "-- --config"])
def test_arguments_that_are_no_flags_are_refused(line: str) -> None:
    with pytest.raises(ArgumentsError, match=r'^"kube-scheduler" does not take any arguments, got \["'):
        parse_options(line.split(), "kube-scheduler")


def test_flags_that_were_given_are_known_even_with_their_default_value() -> None:
    assert parse_options(["--secure-port=10259", "-v0"]).given == {"secure-port", "v"}


def test_flag_without_effect_is_accepted_with_one_warning() -> None:
    options = parse_options(["--disable-http2-serving", "--disable_http2_serving", "--leader-elect"])
    assert options.warnings == ("--disable-http2-serving has no effect: the endpoints speak HTTP/1.1 only",)


def test_the_release_to_follow_is_not_remarked_upon_as_without_effect() -> None:
    assert parse_options(["--emulated-version", "1.37"]).warnings == ()


def test_help_wraps_to_the_terminal_without_losing_a_flag() -> None:
    text = usage("kube-scheduler", width=100)
    assert text.startswith("Usage:\n  kube-scheduler [flags]\n")
    assert text in help_text("kube-scheduler", width=100)
    assert all(re.search(rf"--{name}\b", text) for name in FLAGS)
    assert max(len(line) for line in text.splitlines()) <= 100


WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from([f"--{name}" for name in FLAGS]),
    st.builds("--{}={}".format, st.sampled_from(sorted(FLAGS)), st.text(max_size=8)),
    st.sampled_from(["-v", "-h", "-v=1", "true", "10s", "1,2", "a=b", "a:b=c", "127.0.0.1", "--"]),
)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=5))
def test_any_command_line_is_read_or_refused_with_a_reason(arguments: list[str]) -> None:
    try:
        options = parse_options(arguments)
    except FlagError:
        return
    assert options.given <= set(FLAGS)


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_what_flagz_shows_of_a_flag_can_be_given_again(name: str) -> None:
    flag, options = FLAGS[name], Options()
    shown = options.shown()[name].strip("[]")
    value = getattr(options, flag.field)
    if shown:
        assert flag.type.parse(shown) == value

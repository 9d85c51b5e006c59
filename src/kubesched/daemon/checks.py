"""Checks of the flags, each alone and together, in kube-scheduler's words."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

from kubesched.api.errors import UserError, aggregated
from kubesched.api.release import NEWEST, RELEASES, Release
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.options import Options

TLS_VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_REQUEST_HEADERS = ("username-headers", "group-headers", "extra-headers-prefix", "allowed-names", "uid-headers")
"""The flags that list headers, without `requestheader-`."""


class OptionsError(UserError):
    """Options that cannot be used: all that is wrong, as one line."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__(aggregated(mistakes))


def read_bytes(file: str, flag: str) -> bytes:
    """The content of the file that a flag names. OptionsError if it cannot be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise OptionsError(f"{flag}: {error.strerror}: {file}") from None


def read_text(file: str, flag: str) -> str:
    """The text of the file that a flag names. OptionsError if it cannot be read, or is not UTF-8."""
    try:
        return read_bytes(file, flag).decode()
    except UnicodeDecodeError:
        raise OptionsError(f"{flag}: not UTF-8 text: {file}") from None


def mistakes_in(options: Options, release: Release) -> list[str]:
    """All mistakes in the flags, apart from the configuration that they lead to."""
    return [*_versions(options), *_serving(options), *_authentication(options), *_metrics(options, release)]


def _serving(options: Options) -> Iterator[str]:
    port = options.secure_port
    if not 0 <= port <= 65535:
        yield f"--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
    if not 0 <= options.ui_port <= 65535:
        yield f"--ui-port {options.ui_port} must be between 0 and 65535, inclusive. 0 for no web page"
    elif options.ui_port and options.ui_port == port:
        yield f"--ui-port {options.ui_port} is the secure port already"
    if options.shadow_file and not options.shadow:
        yield "--shadow-file needs --shadow"
    if options.tls_min_version and options.tls_min_version not in TLS_VERSIONS:
        yield f'unknown tls version "{options.tls_min_version}"'
    for path in options.authorization_always_allow_paths:
        if "*" in path[:-1]:
            shown = path.removeprefix("/")
            yield f'only trailing * allowed in "{shown}"'


def _authentication(options: Options) -> Iterator[str]:
    for flag in (f"requestheader-{name}" for name in _REQUEST_HEADERS):
        if any(not name.strip() for name in getattr(options, flag.replace("-", "_"))):
            yield f'empty value in "{flag}"'
    uids = options.requestheader_uid_headers
    if uids and "x-remote-uid" not in (name.lower() for name in uids):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
            "API aggregation will not work"
        )


def _metrics(options: Options, release: Release) -> Iterator[str]:
    previous = release.compatible_versions[-1]
    if options.show_hidden_metrics_for_version not in ("", previous):
        yield (
            f"--show-hidden-metrics-for-version must be omitted or have the value '{previous}'. "
            "Only the previous minor version is allowed"
        )
    for key in options.allow_metric_labels:
        if len([part for part in key.split(",") if part]) != 2:
            yield f'--allow-metric-labels: the key "{key}" must have the form <MetricName>,<LabelName>'


def _versions(options: Options) -> Iterator[str]:
    for flag, texts in (
        ("emulated-version", options.emulated_version),
        ("min-compatibility-version", options.min_compatibility_version),
    ):
        for text in texts:
            component, equals, version = text.partition("=")
            if equals and component.strip() != "kube":
                yield f"component not registered: {component.strip()}"
                continue
            parts = (version if equals else component).strip().removeprefix("v").split(".")
            if len(parts) != 2 or not all(part.isdigit() for part in parts):
                yield f'could not parse "{text}" as version'
            elif flag == "emulated-version" and tuple(map(int, parts)) > _minor_of(NEWEST.name):
                major, minor = _minor_of(NEWEST.name)
                yield f"emulation version {'.'.join(parts)} is not between [{major}.{minor - 3}, {NEWEST.name}]"


def emulated_release(options: Options) -> Release | None:
    """The release that --emulated-version names, or the oldest if it names no other; None without the flag."""
    names = [text.rpartition("=")[2].strip().removeprefix("v") for text in options.emulated_version]
    oldest = next(iter(RELEASES.values()))
    return next((RELEASES[name] for name in names if name in RELEASES), oldest) if names else None


def _minor_of(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def mistakes_in_logging(options: Options, gates: FeatureGates) -> Iterator[str]:
    """Mistakes in the flags about logging, which are checked before all others."""
    if options.log_flush_frequency <= 0:
        yield f'flushFrequency: Invalid value: "{options.log_flush_frequency}": Must be greater than zero'
    if options.logging_format not in ("text", "json"):
        yield f'format: Invalid value: "{options.logging_format}": Unsupported log format'
    if options.vmodule and options.logging_format != "text":
        yield "vmodule: Forbidden: Only supported for text log format"
    if not gates["LoggingAlphaOptions"]:
        for path, is_used in (
            ("options.text.splitStream", options.log_text_split_stream),
            ("options.text.infoBufferSize", options.log_text_info_buffer_size),
            ("options.json.splitStream", options.log_json_split_stream),
            ("options.json.infoBufferSize", options.log_json_info_buffer_size),
        ):
            if is_used:
                yield f"{path}: Forbidden: Feature LoggingAlphaOptions is disabled"

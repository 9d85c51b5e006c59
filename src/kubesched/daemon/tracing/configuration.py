"""The TracingConfiguration of kube-apiserver and kubelet: where spans go, and how many attempts have any."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubesched.api.schema import Mistake, convert
from kubesched.api.yaml import YamlError, documents
from kubesched.config.mistakes import InvalidConfigError, UnreadableConfigError, invalid, out_of_range, unsupported

API_VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1")
KIND = "TracingConfiguration"
MILLION = 1_000_000


class TracingConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """Without a rate, only attempts at pods that a sampled trace has made are traced."""

    api_version: str = ""
    kind: str = ""
    endpoint: str = "localhost:4317"
    """A name as gRPC takes it: https://github.com/grpc/grpc/blob/master/doc/naming.md."""
    sampling_rate_per_million: int = 0


def read_tracing_configuration(text: str, *, source: str) -> TracingConfiguration:
    """The configuration in a YAML or JSON text. ConfigError with all that is wrong with it; `source` is its name."""
    try:
        document = next(documents(text, strict=True), None)
    except YamlError as error:
        raise UnreadableConfigError([Mistake("", str(error))], source) from error
    configuration, mistakes = convert(document and document.value, TracingConfiguration, unknown="error")
    if configuration is None:
        raise UnreadableConfigError(mistakes, source)
    if mistakes := list(_invalid_values(configuration)):
        raise InvalidConfigError(mistakes, source)
    return configuration


def _invalid_values(configuration: TracingConfiguration) -> Iterator[Mistake]:
    if configuration.api_version not in API_VERSIONS:
        yield unsupported("apiVersion", configuration.api_version, API_VERSIONS)
    if configuration.kind != KIND:
        yield unsupported("kind", configuration.kind, [KIND])
    yield from out_of_range("samplingRatePerMillion", configuration.sampling_rate_per_million, 0, MILLION)
    scheme, slashes, rest = configuration.endpoint.partition("://")
    if slashes and scheme not in ("dns", "unix", "unix-abstract"):
        detail = f"unsupported scheme: {scheme}. Options are none, dns, unix, or unix-abstract: OTLP goes over gRPC"
        yield invalid("endpoint", configuration.endpoint, detail)
    elif scheme == "dns" and not rest.startswith("/"):
        yield invalid("endpoint", configuration.endpoint, "no DNS server can be chosen: expected dns:///NAME:PORT")

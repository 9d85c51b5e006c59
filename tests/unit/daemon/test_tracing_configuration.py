"""The file of --tracing-config-file: what is read, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.api.errors import UserError
from kubesched.daemon.completion import complete_options
from kubesched.daemon.options import parse_options
from kubesched.daemon.tracing.configuration import TracingConfiguration, read_tracing_configuration

HEADER = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"


def read(text: str) -> TracingConfiguration:
    return read_tracing_configuration(text, source="tracing.yaml")


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_versions_of_kube_apiserver_are_read(version: str) -> None:
    text = f"apiVersion: apiserver.config.k8s.io/{version}\nkind: TracingConfiguration\n"
    found = read(f"{text}endpoint: collector:4317\nsamplingRatePerMillion: 100\n")
    assert (found.endpoint, found.sampling_rate_per_million) == ("collector:4317", 100)


def test_by_default_the_receiver_is_local_and_only_linked_attempts_are_sampled() -> None:
    assert (read(HEADER).endpoint, read(HEADER).sampling_rate_per_million) == ("localhost:4317", 0)


@pytest.mark.parametrize("endpoint", ["dns:///collector:4317", "unix:///run/otlp.sock", "unix-abstract://otlp"])
def test_names_of_grpc_are_taken(endpoint: str) -> None:
    assert read(f"{HEADER}endpoint: {endpoint}\n").endpoint == endpoint


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "expected"),
        ("a: [", "tracing.yaml"),
        ("apiVersion: v1\nkind: TracingConfiguration\n", 'apiVersion: Unsupported value: "v1"'),
        ("apiVersion: apiserver.config.k8s.io/v1\nkind: Policy\n", 'kind: Unsupported value: "Policy"'),
        (f"{HEADER}samplingRate: 1\n", "samplingRate: unknown field"),
        (f"{HEADER}samplingRatePerMillion: all\n", "samplingRatePerMillion: expected"),
        (
            f"{HEADER}samplingRatePerMillion: -1\n",
            "samplingRatePerMillion: Invalid value: -1: must be from 0 to 1000000",
        ),
        (f"{HEADER}samplingRatePerMillion: 1000001\n", "must be from 0 to 1000000"),
        (f"{HEADER}endpoint: http://collector:4318\n", "endpoint: Invalid value.*unsupported scheme: http"),
        (f"{HEADER}endpoint: dns://8.8.8.8/collector:4317\n", "endpoint: Invalid value.*dns:///NAME:PORT"),
    ],
)
def test_mistake_names_the_file_the_field_and_what_was_expected(text: str, mistake: str) -> None:
    with pytest.raises(UserError, match=mistake) as caught:
        read(text)
    assert all(line.startswith("tracing.yaml: ") for line in caught.value.lines)


def test_flag_points_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(f"{HEADER}samplingRatePerMillion: 7\n")
    found = complete_options(parse_options([f"--tracing-config-file={file}"])).tracing
    assert found is not None
    assert found.sampling_rate_per_million == 7
    assert complete_options(parse_options([])).tracing is None


def test_file_that_is_not_there_is_named_with_its_flag(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--tracing-config-file: No such file or directory: .*/none\.yaml"):
        complete_options(parse_options([f"--tracing-config-file={tmp_path}/none.yaml"]))

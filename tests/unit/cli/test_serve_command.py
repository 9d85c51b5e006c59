"""`kubesched serve`: what it refuses before it listens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

SHOP = str(Path(__file__).parents[3] / "examples" / "shop")


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code == 2, result.output
    return result.stderr


@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.1", "::"])
def test_other_addresses_are_refused_without_tls(address: str) -> None:
    said = refused("-f", SHOP, "--bind-address", address)
    assert said.startswith(f"will not listen on {address}: others could reach it, and there is no protection (TLS ")


def test_token_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refused("-f", SHOP, "--token-file", str(tmp_path / "token"))


def test_half_of_a_key_pair_is_refused() -> None:
    assert "give both, or none" in refused("-f", SHOP, "--tls-cert-file", "tls.crt")


def test_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}: address already in use" in refused("-f", SHOP, "--port", str(port))


def test_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(url))
        assert url in refused("--kubeconfig", str(tmp_path / "kubeconfig"))

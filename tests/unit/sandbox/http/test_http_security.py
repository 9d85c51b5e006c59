from __future__ import annotations

import base64
import ssl
import stat
from pathlib import Path

import pytest
import yaml
from tests.sandbox_server import fresh_api
from tests.unit.sandbox.http.asking import PODS, Asking, with_server

from kubesched.sandbox.http import (
    ExposedError,
    Server,
    kubeconfig,
    self_signed,
    server_context,
    write_kubeconfig,
)


def test_a_token_is_asked_of_everybody_but_for_health_and_version() -> None:
    async def test(ask: Asking) -> None:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic c2VjcmV0"}):
            answer = await ask("GET", PODS, headers=headers)
            assert (answer.status, answer.reason) == (401, "Unauthorized")
            assert (await ask("GET", "/sandbox/faults", headers=headers)).status == 401
            assert (await ask("GET", "/api", headers=headers)).status == 401
            assert (await ask("GET", "/healthz", headers=headers)).status == 200
            assert (await ask("GET", "/version", headers=headers)).status == 200
        assert (await ask("GET", PODS, headers={"Authorization": "Bearer secret"})).status == 200

    with_server(test, token="secret")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.4", "example.com"])
def test_a_server_does_not_listen_to_others_without_tls_and_a_token(host: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for options in ({}, {"token": "x"}, {"tls": context}):
        with pytest.raises(ExposedError, match="missing"):
            Server(fresh_api(), host=host, **options)
    Server(fresh_api(), host=host, token="x", tls=context)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_loopback_needs_no_protection(host: str) -> None:
    Server(fresh_api(), host=host)


def test_a_kubeconfig_is_all_a_client_needs_over_tls(tmp_path: Path) -> None:
    made = self_signed(["127.0.0.1", "localhost"])
    (tmp_path / "tls.crt").write_bytes(made.chain)
    (tmp_path / "tls.key").write_bytes(made.key)

    async def test(ask: Asking) -> None:
        path = tmp_path / "deep" / "kubeconfig"
        write_kubeconfig(path, kubeconfig(ask.server.url, token="secret", authority=made.chain))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        config = yaml.safe_load(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        assert cluster["server"].startswith("https://127.0.0.1:")
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=authority)
        answer = await ask("GET", PODS, headers={"Authorization": f"Bearer {user['token']}"}, ssl=trust)
        assert answer.status == 200

    with_server(test, token="secret", tls=server_context(tmp_path / "tls.crt", tmp_path / "tls.key"))

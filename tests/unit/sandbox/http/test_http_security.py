from __future__ import annotations

import base64
import ssl
import stat
from pathlib import Path

import pytest
import yaml
from tests.sandbox_server import fresh_api
from tests.unit.sandbox.http.asking import PODS, Asking, with_server

from kubesched.http.access import ExposedError
from kubesched.http.listen import server_context
from kubesched_sandbox.http import Server, kubeconfig, self_signed, write_kubeconfig


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

    with_server(test, token="secret", tls=server_context(made))


POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}])
def test_a_web_page_of_another_site_can_neither_create_a_pod_nor_read_one(headers: dict[str, str]) -> None:
    async def test(ask: Asking) -> None:
        for method, body in (("POST", POD), ("GET", None)):
            answer = await ask(method, PODS, body, headers=headers)
            assert (answer.status, answer.reason) == (403, "Forbidden")
        assert (await ask("GET", PODS)).names == []

    with_server(test)


def test_a_body_that_does_not_say_what_it_is_is_refused_from_browsers_which_send_one_for_any_page() -> None:
    async def test(ask: Asking) -> None:
        answer = await ask("POST", PODS, POD, headers={"Content-Type": "", "Sec-Fetch-Site": "cross-site"})
        assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")

    with_server(test)


def test_a_body_that_does_not_say_what_it_is_is_json_from_other_clients() -> None:
    async def test(ask: Asking) -> None:
        assert (await ask("POST", PODS, POD, headers={"Content-Type": ""})).status == 201

    with_server(test)


def test_a_page_of_the_server_itself_is_answered_under_every_name_of_this_machine() -> None:
    async def test(ask: Asking) -> None:
        for host in ("localhost", "127.0.0.1", "[::1]"):
            netloc = f"{host}:{ask.server.port}"
            headers = {"Host": netloc, "Origin": f"http://{netloc}"}
            assert (await ask("GET", PODS, headers=headers)).status == 200

    with_server(test)


def test_with_a_token_any_name_may_lead_to_the_server_but_other_pages_are_still_refused() -> None:
    async def test(ask: Asking) -> None:
        headers = {"Authorization": "Bearer secret", "Host": "sandbox.example"}
        assert (await ask("GET", PODS, headers=headers)).status == 200
        assert (await ask("GET", PODS, headers=headers | {"Origin": "https://evil.example"})).status == 403

    with_server(test, token="secret")


@pytest.mark.parametrize("size", [40, 200_000])
def test_aliases_do_not_make_more_of_a_body_than_a_body_may_be(size: int) -> None:
    aliases = ", ".join(["*a"] * (4_000_000 // size))
    body = f"metadata: {{name: web}}\nspec:\n  x: &a {'v' * size}\n  y: [{aliases}]\n".encode()

    async def test(ask: Asking) -> None:
        answer = await ask("POST", PODS, body, headers={"Content-Type": "application/yaml"})
        assert answer.status == 400
        assert "aliases make too much of this document" in answer.json["message"]

    with_server(test)

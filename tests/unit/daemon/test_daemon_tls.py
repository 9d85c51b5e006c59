from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.unit.daemon.authority import Authority, trusting, written
from tests.unit.daemon.secure_server import Ask, serve

from kubesched.api.errors import UserError
from kubesched.daemon.flag_values import CertKey
from kubesched.http.listen import ListenError, bind


def test_certificate_that_was_renewed_is_shown_at_once(tmp_path: Path) -> None:
    old, new = Authority("old"), Authority("new")
    cert, key = written(old.server("localhost"), tmp_path)

    async def talk(ask: Ask) -> None:
        assert (await ask("/healthz")).status == 200
        written(new.server("localhost"), tmp_path)
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ask("/healthz")

    serve(talk, client=trusting(old), tls_cert_file=cert, tls_private_key_file=key)


def test_files_in_the_middle_of_a_renewal_change_nothing(tmp_path: Path) -> None:
    authority = Authority("a")
    cert, key = written(authority.server("localhost"), tmp_path)

    async def talk(ask: Ask) -> None:
        assert (await ask("/healthz")).status == 200
        Path(cert).write_bytes(authority.server("localhost").chain)
        assert (await ask("/healthz")).status == 200
        Path(cert).write_text("nonsense")
        assert (await ask("/healthz")).status == 200

    serve(talk, client=trusting(authority), tls_cert_file=cert, tls_private_key_file=key)


@pytest.mark.parametrize(
    ("asked_for", "shown"),
    [
        ("a.example.com", "exact"),
        ("b.example.com", "wildcard"),
        ("elsewhere.org", "default"),
        ("x.b.example.com", "default"),
    ],
)
def test_certificate_is_chosen_by_the_name_that_is_asked_for(tmp_path: Path, asked_for: str, shown: str) -> None:
    authority = Authority("a")
    files = {
        "default": written(authority.server("default"), tmp_path, "default"),
        "wildcard": written(authority.server("wildcard", "*.example.com"), tmp_path, "wildcard"),
        "exact": written(authority.server("exact"), tmp_path, "exact"),
    }
    sni = (CertKey(*files["wildcard"]), CertKey(*files["exact"], ("a.example.com",)))
    found: list[str] = []

    def look(port: int) -> str:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            trusting(authority).wrap_socket(plain, server_hostname=asked_for) as secured,
        ):
            subject = (secured.getpeercert() or {})["subject"]
            return str(dict(pair[0] for pair in subject)["commonName"])  # type: ignore[misc]

    ports: list[int] = []

    async def talk(ask: Ask) -> None:
        found.append(await asyncio.to_thread(look, ports[0]))

    default = files["default"]
    serve(
        talk,
        before=lambda server: ports.append(server.port),
        tls_cert_file=default[0],
        tls_private_key_file=default[1],
        tls_sni_cert_key=sni,
    )
    assert found == [shown]


def test_old_tls_versions_are_refused() -> None:
    client = trusting()
    client.maximum_version = ssl.TLSVersion.TLSv1_2

    async def talk(ask: Ask) -> None:
        with pytest.raises(aiohttp.ClientError):
            await ask("/healthz")

    serve(talk, client=client, tls_min_version="VersionTLS13")


def test_only_chosen_cipher_suites_are_offered() -> None:
    client = trusting()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")

    async def works(ask: Ask) -> None:
        assert (await ask("/healthz")).status == 200

    async def fails(ask: Ask) -> None:
        with pytest.raises(aiohttp.ClientError):
            await ask("/healthz")

    serve(works, client=client, tls_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",))
    serve(fails, client=client, tls_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",))


def test_self_signed_certificate_is_kept_in_its_directory(tmp_path: Path) -> None:
    async def talk(ask: Ask) -> None:
        assert (await ask("/healthz")).status == 200

    directory = tmp_path / "certs"
    serve(talk, cert_dir=str(directory))
    first = (directory / "kube-scheduler.crt").read_bytes()
    assert (directory / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600
    serve(talk, cert_dir=str(directory))
    assert (directory / "kube-scheduler.crt").read_bytes() == first


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tls_cert_file": "/no/cert", "tls_private_key_file": "/no/key"}, "--tls-cert-file: No such file"),
        ({"tls_cipher_suites": ("NONSENSE",)}, "Cipher suite NONSENSE not supported or doesn't exist"),
        ({"client_ca_file": "/no/ca"}, "--client-ca-file: No such file"),
    ],
)
def test_files_and_suites_that_cannot_be_used_are_one_clear_line(options: dict[str, Any], complaint: str) -> None:
    async def talk(ask: Ask) -> None:
        raise AssertionError("it must not start")

    with pytest.raises(UserError, match=complaint):
        serve(talk, **options)


def test_port_that_is_taken_is_one_clear_line() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenError) as caught:
            bind("127.0.0.1", port)
    assert str(caught.value) == (
        f"failed to create listener: failed to listen on 127.0.0.1:{port}: "
        f"listen tcp 127.0.0.1:{port}: bind: address already in use"
    )


def test_unspecified_address_stands_for_both_families() -> None:
    with bind("0.0.0.0", 0) as listener:
        listener.listen()
        with socket.create_connection(("127.0.0.1", listener.getsockname()[1]), timeout=5) as connected:
            assert connected.getpeername()[0] == "127.0.0.1"


def test_clients_that_speak_no_tls_are_not_worth_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ports: list[int] = []

    def shout() -> None:
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=5) as plain:
            plain.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            while plain.recv(1024):
                pass

    async def talk(ask: Ask) -> None:
        await asyncio.to_thread(shout)
        assert (await ask("/healthz")).status == 200

    serve(talk, before=lambda server: ports.append(server.port))
    assert [record.message for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []

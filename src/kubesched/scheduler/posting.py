"""Posting JSON to a server that must answer in time: the whole call, not each of its bytes."""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kubesched.config.duration import Duration
from kubesched.config.extender import ExtenderTLSConfig

LONGEST_ANSWER = 256 * 2**20


class PostError(Exception):
    """Nothing came back that could be read, and why."""


class Server:
    """Takes JSON posted below one address, on a connection per call, and must answer in time."""

    def __init__(
        self, address: str, *, timeout: float, tls: ExtenderTLSConfig | None = None, trust_anybody: bool = False
    ) -> None:
        """`trust_anybody` is about servers whose authority is not given."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'expected an address such as "http://host:port/prefix", got "{address}"')
        self._address = address.rstrip("/")
        self._path = parts.path.rstrip("/")
        self._host: str = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._host_header = parts.netloc.rpartition("@")[2]
        self._timeout = timeout
        self._server_name = (tls.server_name if tls is not None else "") or self._host
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = _context(tls or ExtenderTLSConfig(), trust_anybody=trust_anybody)

    def post(self, verb: str, body: bytes) -> bytes:
        """The answer to one call, if it is 200 OK."""
        url = f"{self._address}/{verb}"
        deadline = time.monotonic() + self._timeout
        try:
            return self._post(url, f"{self._path}/{verb}", body, deadline)
        except TimeoutError:
            raise PostError(f"POST {url}: no answer within {Duration(self._timeout)}") from None
        except http.client.HTTPException as problem:
            raise PostError(f"POST {url}: the answer is not HTTP: {problem!r}") from None
        except (OSError, UnicodeError) as problem:
            raise PostError(f"POST {url}: {getattr(problem, 'strerror', None) or problem}") from None

    def _post(self, url: str, path: str, body: bytes, deadline: float) -> bytes:
        with self._connect(deadline) as connected:
            connection = http.client.HTTPConnection(self._host, self._port)
            connection.sock = _Deadlined(connected, deadline)
            headers = {"Host": self._host_header, "Content-Type": "application/json", "Connection": "close"}
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                verb = path.rpartition("/")[2]
                raise PostError(f"failed {verb} with extender at URL {url}, code {response.status}")
            answer = response.read(LONGEST_ANSWER + 1)
            if len(answer) > LONGEST_ANSWER:
                raise PostError(f"POST {url}: the answer is longer than {LONGEST_ANSWER} bytes")
            return answer

    def _connect(self, deadline: float) -> socket.socket:
        plain = socket.create_connection((self._host, self._port), timeout=_left(deadline))
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(_left(deadline))
            return plain if self._tls is None else self._tls.wrap_socket(plain, server_hostname=self._server_name)
        except BaseException:
            plain.close()
            raise


class _Deadlined:
    """A socket whose operations together, rather than each, must end in time: a server may drip bytes for ever."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._connected = connected
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._connected.settimeout(_left(self._deadline))
            rest = rest[self._connected.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlinedReader(self._connected, self._deadline))

    def close(self) -> None:
        """Not yet: the answer is still to be read. Whoever connected hangs up."""


class _DeadlinedReader(io.RawIOBase):
    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._connected = connected
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connected.settimeout(_left(self._deadline))
        return self._connected.recv_into(buffer)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _context(tls: ExtenderTLSConfig, *, trust_anybody: bool) -> ssl.SSLContext:
    """The certificates to trust and to show; ValueError if they cannot be used."""
    has_authority = bool(tls.ca_file or tls.ca_data)
    if tls.insecure and has_authority:
        raise ValueError("tlsConfig: a certificate authority makes no sense together with insecure: true")
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        raise ValueError("tlsConfig: a client certificate and its key must be given together")
    context = ssl.create_default_context()
    try:
        if tls.ca_data:
            context = ssl.create_default_context(cadata=tls.ca_data.decode())
        elif tls.ca_file:
            context = ssl.create_default_context(cafile=tls.ca_file)
        elif tls.insecure or trust_anybody:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert_data or tls.cert_file:
            _show_certificate(context, tls)
    except (OSError, ValueError) as problem:
        raise ValueError(f"tlsConfig: {problem}") from None
    return context


def _show_certificate(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    """The standard library reads certificates from files only: data is in one for a moment, readable by nobody else."""
    with tempfile.TemporaryDirectory() as directory:
        cert = _written(tls.cert_data, Path(directory, "cert")) or tls.cert_file
        key = _written(tls.key_data, Path(directory, "key")) or tls.key_file
        context.load_cert_chain(cert, key)


def _written(data: bytes, path: Path) -> str:
    if not data:
        return ""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return str(path)

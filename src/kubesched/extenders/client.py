"""Posts JSON to one extender; the timeout is for the whole call."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from kubesched.api.duration import Duration
from kubesched.config.configuration import ExtenderTLSConfig
from kubesched.framework.extender import ExtenderSettingsError
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.proxy import parse_proxy, proxy_of_environment
from kubesched.kube.tls import Certificate, ServerTrust, TlsContexts

MOST_REQUESTS = 10
"""Requests of one call: the first, and redirects."""
IDLE_SECONDS = 90.0
"""After that time without a request a connection is closed, as in Go."""


class PostError(Exception):
    """Why a call brought no answer."""


class ExtenderClient:
    """Posts questions to one address, over connections that it keeps for the next one."""

    def __init__(
        self,
        address: str,
        *,
        timeout: float,
        tls: ExtenderTLSConfig | None = None,
        skip_verify: bool = False,
    ) -> None:
        """With `skip_verify` any certificate will do, unless `tls` names an authority.

        ExtenderSettingsError if the address, a proxy or the certificates cannot be used.
        """
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ExtenderSettingsError(
                f'expected an address such as "http://host:port/prefix", got "{without_password(address)}"'
            )
        self._address = address.rstrip("/")
        self._timeout = timeout
        self._proxy = _proxy(address, f"{parts.scheme.upper()}_PROXY")
        self._server_name = tls.server_name if tls is not None and tls.server_name else None
        is_default = tls is None and not skip_verify
        self._trust = True if is_default else _tls_context(tls or ExtenderTLSConfig(), skip_verify=skip_verify)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, verb: str, body: bytes, *, repeatable: bool = True) -> bytes:
        """The answer to one call, if it is 200 OK.

        If the server closes the connection before it answers, it may have read the call: a `repeatable` one is made
        again, once; others fail.
        """
        url = f"{self._address}/{verb}"
        shown_url = without_password(url)
        try:
            async with asyncio.timeout(self._timeout):
                status, answer = await self._exchange(url, body, repeatable=repeatable)
        except TimeoutError:
            raise PostError(f"POST {shown_url}: no answer within {Duration(self._timeout)}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise PostError(f"POST {shown_url}: {_reason(error)}") from None
        if status != HTTPStatus.OK:
            raise PostError(f"failed {verb} with extender at URL {shown_url}, code {status}")
        return answer

    async def close(self) -> None:
        """Hang up."""
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, url: str, body: bytes, *, repeatable: bool) -> tuple[int, bytes]:
        try:
            return await self._post(url, body)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not repeatable:
                raise
            return await self._post(url, body)

    async def _post(self, url: str, body: bytes) -> tuple[int, bytes]:
        async with self._open_session().post(
            url,
            data=io.BytesIO(body),  # aiohttp writes it in pieces: a question may have tens of megabytes
            headers={"Content-Type": "application/json"},
            proxy=self._proxy,
            ssl=self._trust,
            server_hostname=self._server_name,
            max_redirects=MOST_REQUESTS,
        ) as response:
            return response.status, await response.read()

    def _open_session(self) -> aiohttp.ClientSession:
        """The session of the first call and all others: it belongs to the event loop that runs then."""
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=IDLE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session


def without_password(url: str) -> str:
    """The address without its password: messages end up in conditions and events of pods."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    return parts._replace(netloc=f"{parts.username}:xxxxx@{parts.netloc.rpartition('@')[2]}").geturl()


def _proxy(address: str, variable: str) -> str | None:
    url = proxy_of_environment(address, os.environ)
    if not url:
        return None
    try:
        proxy = parse_proxy(url, variable)
    except ConnectionSettingsError as error:
        raise ExtenderSettingsError(str(error)) from None
    if proxy.scheme.startswith("socks"):
        raise ExtenderSettingsError(f"{variable}: expected an HTTP proxy: a SOCKS proxy cannot lead to an extender")
    return url


def _tls_context(tls: ExtenderTLSConfig, *, skip_verify: bool) -> ssl.SSLContext:
    """The certificates to trust and to show; ExtenderSettingsError if they cannot be used."""
    has_authority = bool(tls.ca_file or tls.ca_data)
    if tls.insecure and has_authority:
        raise ExtenderSettingsError("tlsConfig: a certificate authority makes no sense together with insecure: true")
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        raise ExtenderSettingsError("tlsConfig: a client certificate and its key must be given together")
    insecure = tls.insecure or (skip_verify and not has_authority)
    trust = ServerTrust(ca_file=tls.ca_file, ca_data=tls.ca_data, insecure=insecure)
    try:
        chain = tls.cert_data or (Path(tls.cert_file).read_bytes() if tls.cert_file else b"")
        key = tls.key_data or (Path(tls.key_file).read_bytes() if tls.key_file else b"")
        return TlsContexts(trust).context(Certificate(chain, key) if chain else None)
    except (OSError, ConnectionSettingsError) as error:
        raise ExtenderSettingsError(f"tlsConfig: {error}") from None


def _reason(error: Exception) -> str:
    cause = getattr(error, "os_error", None)
    if isinstance(error, aiohttp.TooManyRedirects):
        return f"stopped after {MOST_REQUESTS} redirects"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the answer is not HTTP: {error.message}"
    if isinstance(cause, socket.gaierror):
        return f"{cause.strerror}"
    if isinstance(cause, ConnectionError) and cause.errno is not None:
        return os.strerror(cause.errno)
    return str(error) or type(error).__name__

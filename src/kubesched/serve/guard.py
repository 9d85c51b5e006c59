"""Who may ask: whoever has the token, or a certificate of the client authority. Probes are answered to everyone."""

from __future__ import annotations

import contextlib
import datetime
import hmac
import secrets
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Middleware

from kubesched.api.api_error import ApiError
from kubesched.api.errors import UserError
from kubesched.daemon.options import Options
from kubesched.daemon.serving.tls import ServingTls
from kubesched.kube.tls import stamp
from kubesched.sandbox.http.security import check_exposure, check_origin

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PROBES = ("/healthz", "/readyz")


class ProtectionError(UserError):
    """Options about who may ask that cannot be."""


class Token:
    """A bearer token: made for this run, or from a file, which is read again when it changes.

    While the file is being replaced it may be empty or gone: the last token counts until there is a new one.
    """

    def __init__(self, file: str = "") -> None:
        self._file = file
        self._stamp: object = None
        self.value = self._read() if file else secrets.token_urlsafe(24)

    def admits(self, header: str) -> bool:
        """Whether an Authorization header has it."""
        scheme, _, offered = header.partition(" ")
        if self._file and stamp(self._file) != self._stamp:
            with contextlib.suppress(ProtectionError):
                self.value = self._read()
        is_the_token = hmac.compare_digest(offered.strip().encode(), self.value.encode())
        return scheme.lower() == "bearer" and is_the_token

    def _read(self) -> str:
        seen = stamp(self._file)
        try:
            value = Path(self._file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ProtectionError(f"--token-file: {self._file}: {error}") from None
        if not value:
            raise ProtectionError(f"--token-file: {self._file}: there is no token in it")
        self._stamp = seen
        return value


def tls_context(cert_file: str, key_file: str, client_ca_file: str) -> ssl.SSLContext | None:
    """TLS as the options ask for it; None for none. Raises UserError."""
    if bool(cert_file) != bool(key_file):
        raise ProtectionError("--tls-cert-file and --tls-private-key-file: give both, or none")
    if not cert_file:
        if client_ca_file:
            raise ProtectionError("--client-ca-file: needs --tls-cert-file and --tls-private-key-file")
        return None
    options = Options(tls_cert_file=cert_file, tls_private_key_file=key_file)
    tls = ServingTls(options, lambda: datetime.datetime.now(datetime.UTC))
    if client_ca_file:
        try:
            tls.trust(Path(client_ca_file).read_bytes())
            ssl.create_default_context(cafile=client_ca_file)
        except OSError as error:  # ssl.SSLError is one, for a file without certificates
            raise ProtectionError(f"--client-ca-file: {client_ca_file}: {error}") from None
    return tls.context


class Guard:
    """Decides about requests to one address."""

    def __init__(self, host: str, token: Token | None, tls: ssl.SSLContext | None) -> None:
        """Without a token only client certificates count. ExposedError if the address would be open to others."""
        check_exposure(host, has_token=True, has_tls=tls is not None)
        self._host = host
        self._token = token

    def middleware(self) -> Middleware:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                check_origin(request.headers, self._host, has_token=True)
            except ApiError as error:
                raise web.HTTPForbidden(text=error.message) from None
            if request.path not in PROBES and not self._admits(request):
                raise web.HTTPUnauthorized(
                    text="this needs the bearer token, or a client certificate where one is accepted",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            return await handler(request)

        return guarded

    def _admits(self, request: web.Request) -> bool:
        if self._token is not None and self._token.admits(request.headers.get("Authorization", "")):
            return True
        connection = request.get_extra_info("ssl_object")
        return connection is not None and bool(connection.getpeercert())

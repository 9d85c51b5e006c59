"""The oidc auth provider of a kubeconfig: an identity token, renewed with a refresh token when it expires."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from kubesched.kube.credentials import Credentials, FixedAuthorization, basic, bearer
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import ConnectionSettingsError, CredentialsError, UnreachableError
from kubesched.kube.http_connection import HttpResponse
from kubesched.kube.proxy import proxy_of_environment
from kubesched.kube.shared_work import SharedWork
from kubesched.kube.tls import ServerTrust
from kubesched.kube.transport import Transport, user_agent

_LEEWAY = 10.0  # seconds before its end at which a token counts as expired
_TIMEOUT = 30.0
_FORM = "application/x-www-form-urlencoded"


class _Claims(msgspec.Struct, frozen=True):
    exp: float


class _Reply(msgspec.Struct, frozen=True):
    """An answer of a provider: the endpoint for tokens, or the tokens."""

    token_endpoint: str = ""
    id_token: str = ""
    refresh_token: str = ""


class OidcCredentials(Credentials):
    """New tokens are kept in memory only: the kubeconfig belongs to its author, and may be read-only."""

    def __init__(
        self, config: Mapping[str, str], *, environ: Mapping[str, str], wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._config = config
        self._environ = environ
        self._now = wall_clock
        self._token = config.get("id-token", "")
        self._refresh_token = config.get("refresh-token", "")
        self._refreshing = SharedWork(self._refresh)
        self._trust = _trust(config)

    def at_hand(self) -> str | None:
        is_good = self._token and _expiry(self._token) - _LEEWAY > self._now()
        return bearer(self._token) if is_good else None

    async def authorization(self) -> str:
        if self.at_hand() is None:
            await self._refreshing.wait()
        return bearer(self._token)

    async def renew(self, refused: str) -> bool:
        if bearer(self._token) == refused and self._refresh_token:
            await self._refreshing.wait()
        return bearer(self._token) != refused

    async def close(self) -> None:
        await self._refreshing.end()

    async def _refresh(self) -> None:
        if not self._refresh_token:
            raise CredentialsError("oidc: no valid id-token, and cannot refresh without refresh-token")
        issuer = self._config["idp-issuer-url"]
        metadata = await self._ask(f"{issuer.rstrip('/')}/.well-known/openid-configuration", b"")
        if not metadata.token_endpoint:
            raise CredentialsError(f"oidc: {issuer}: discovery object doesn't contain a token_endpoint")
        tokens = await self._tokens(metadata.token_endpoint)
        if not tokens.id_token:
            raise CredentialsError(
                'oidc: token response did not contain an id_token, either the scope "openid" wasn\'t requested upon '
                "login, or the provider doesn't support id_tokens as part of the refresh response"
            )
        self._token = tokens.id_token
        self._refresh_token = tokens.refresh_token or self._refresh_token

    async def _tokens(self, endpoint: str) -> _Reply:
        """Providers differ in where they want the secret: in a header, or in the form."""
        client, secret = self._config["client-id"], self._config.get("client-secret", "")
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
        if secret:
            authorization = basic(quote(client, safe=""), quote(secret, safe=""))
            answer = await self._answer(endpoint, urlencode(form).encode(), authorization)
            if answer.status == 200:
                return _read(answer, endpoint)
            form["client_secret"] = secret
        form["client_id"] = client
        return await self._ask(endpoint, urlencode(form).encode())

    async def _ask(self, url: str, form: bytes) -> _Reply:
        return _read(await self._answer(url, form, ""), url)

    async def _answer(self, url: str, form: bytes, authorization: str) -> HttpResponse:
        """Providers are asked once an hour or so: no connection is kept."""
        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.netloc}"
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            dialer = Dialer(server, self._trust, proxy_of_environment(server, self._environ))
            transport = Transport(dialer, FixedAuthorization(authorization), connections=1, clock=time.monotonic)
            try:
                method = "POST" if form else "GET"
                return await transport.send(method, path, form, _FORM, agent=user_agent(), timeout=_TIMEOUT)
            finally:
                await transport.close()
        except (UnreachableError, ConnectionSettingsError) as error:
            raise CredentialsError(f"oidc: {url}: {error}") from None


def _trust(config: Mapping[str, str]) -> ServerTrust:
    data = config.get("idp-certificate-authority-data", "")
    try:
        return ServerTrust(
            ca_file=config.get("idp-certificate-authority", ""), ca_data=base64.b64decode(data, validate=True)
        )
    except binascii.Error:
        raise ConnectionSettingsError("oidc: idp-certificate-authority-data: expected a base64 string") from None


def _read(answer: HttpResponse, url: str) -> _Reply:
    if answer.status != 200:
        text = " ".join(answer.body[:80].decode(errors="replace").split())
        raise CredentialsError(f"oidc: {url}: failed to refresh token: status {answer.status}: {text}")
    try:
        return msgspec.json.decode(answer.body, type=_Reply)
    except msgspec.DecodeError as error:
        raise CredentialsError(f"oidc: {url}: the answer cannot be read: {error}") from None


def _expiry(token: str) -> float:
    """When a token ends, in seconds since 1970."""
    parts = token.split(".")
    if len(parts) != 3:
        raise CredentialsError("oidc: id-token is not a valid JWT")
    payload = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(payload), type=_Claims).exp
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise CredentialsError(f"oidc: id-token: parsing claims: {error}") from None

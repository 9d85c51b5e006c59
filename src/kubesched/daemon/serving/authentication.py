"""The user of a request, whom a front proxy, a client certificate or a token names; without them it is anonymous.

Flags name the authorities whose certificates are accepted, and the proxies that may name the user. For those that no
flag names, the API server has a config map.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from kubesched.daemon.checks import OptionsError, read_bytes
from kubesched.daemon.log import Log
from kubesched.daemon.options import Options
from kubesched.daemon.serving.reviews import SECONDS, ReviewApi, ReviewedUser, TokenReviewer

ANONYMOUS = ReviewedUser("system:anonymous", groups=("system:unauthenticated",))
_AUTHENTICATED = "system:authenticated"


class UnauthorizedError(Exception):
    """The credentials of a request are not valid."""


class Authenticator:
    """Accepts certificates of the authorities it was given last, and tokens that the API server knows."""

    def __init__(self, tokens: TokenReviewer | None) -> None:
        """Without a reviewer, a request with a token is anonymous."""
        self._tokens = tokens
        self._authorities = Authorities()
        self._client_cas: Sequence[x509.Certificate] = ()
        self._proxy_cas: Sequence[x509.Certificate] = ()

    def trust(self, authorities: Authorities) -> None:
        self._authorities = authorities
        self._client_cas = _certificates(authorities.client_ca)
        self._proxy_cas = _certificates(authorities.proxy_ca)

    async def user_of(self, headers: Mapping[str, str], connection: ssl.SSLObject | None) -> ReviewedUser:
        """The user. UnauthorizedError for bad credentials, ReviewError if the API server cannot be asked."""
        chain = _chain(connection)
        if chain and _is_issued_by(chain, self._proxy_cas) and (user := self._user_of_proxy(chain[0], headers)):
            return user
        if chain and _is_issued_by(chain, self._client_cas) and (user := _user_in(chain[0])):
            return user
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if self._tokens is not None and scheme.lower() == "bearer" and token.strip():
            user_of_token = await self._tokens.user_of(token.strip())
            if user_of_token is None:
                raise UnauthorizedError
            return _authenticate(user_of_token)
        return ANONYMOUS

    def _user_of_proxy(self, certificate: x509.Certificate, headers: Mapping[str, str]) -> ReviewedUser | None:
        authorities, names = self._authorities, _attributes(certificate, NameOID.COMMON_NAME)
        if authorities.allowed_names and not set(names) & set(authorities.allowed_names):
            return None
        name = next((headers[header] for header in authorities.username_headers if headers.get(header)), "")
        if not name:
            return None
        uid = next((headers[header] for header in authorities.uid_headers if headers.get(header)), "")
        group_headers = [header.lower() for header in authorities.group_headers]
        groups = [value for name in group_headers for header, value in headers.items() if header.lower() == name]
        extra = _extra(headers, authorities.extra_prefixes)
        return _authenticate(ReviewedUser(name, uid, tuple(groups), tuple(extra)))


def _user_in(certificate: x509.Certificate) -> ReviewedUser | None:
    """The common name is the user, organizations are groups."""
    name = next(iter(_attributes(certificate, NameOID.COMMON_NAME)), "")
    groups = _attributes(certificate, NameOID.ORGANIZATION_NAME)
    return _authenticate(ReviewedUser(name, groups=tuple(groups))) if name else None


def _authenticate(user: ReviewedUser) -> ReviewedUser:
    if _AUTHENTICATED in user.groups:
        return user
    return ReviewedUser(user.name, user.uid, (*user.groups, _AUTHENTICATED), user.extra)


def _extra(headers: Mapping[str, str], prefixes: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        for prefix in prefixes:
            if header.lower().startswith(prefix.lower()):
                key = unquote(header[len(prefix) :].lower())
                extra[key] = (*extra.get(key, ()), value)
    return list(extra.items())


def _attributes(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]


def _chain(connection: ssl.SSLObject | None) -> list[x509.Certificate]:
    """The client's certificate and, from Python 3.13 on, those up to its authority, all verified by OpenSSL."""
    leaf = connection.getpeercert(binary_form=True) if connection is not None else None
    if not leaf:
        return []
    verified = getattr(connection, "get_verified_chain", None)
    chain: list[bytes] = verified() if verified is not None else [leaf]
    return [x509.load_der_x509_certificate(certificate) for certificate in chain or [leaf]]


def _is_issued_by(chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate]) -> bool:
    """Whether one of these authorities issued the chain: a handshake also accepts authorities for other purposes."""
    for certificate in chain:
        for authority in authorities:
            try:
                certificate.verify_directly_issued_by(authority)
            except (InvalidSignature, ValueError, TypeError):
                continue
            return True
    return False


def _certificates(pem: bytes) -> Sequence[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem) if pem else ()


CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
REFRESH_SECONDS = 60.0

log = Log(__name__)


class Authorities(msgspec.Struct, frozen=True):
    """Certificates of authorities in PEM, and how front proxies tell who the user is."""

    client_ca: bytes = b""
    proxy_ca: bytes = b""
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    @property
    def both(self) -> bytes:
        """All authorities that a TLS handshake accepts."""
        return b"\n".join(filter(None, (self.client_ca, self.proxy_ca)))


class AuthoritySource:
    """Reads the authorities from flags, files and the cluster, and reads them again from time to time."""

    def __init__(self, options: Options, api: ReviewApi | None, on_change: Callable[[Authorities], None]) -> None:
        """`on_change` is called with new authorities."""
        self._options = options
        self._api = None if options.authentication_skip_lookup else api
        self._on_change = on_change
        self._looked_up: dict[str, str] = {}
        self.current = Authorities()

    async def start(self) -> None:
        """Read them for the first time. OptionsError if a file, or a config map that is needed, cannot be read."""
        await self._look_up(first=True)
        self._use(self._read())

    async def keep_fresh(self) -> None:
        """Read them again every minute, for ever."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self._look_up(first=False)
            try:
                self._use(self._read())
            except OptionsError as error:
                log.error("Client authorities could not be read again", err=error)

    async def _look_up(self, *, first: bool) -> None:
        needed = not (self._options.client_ca_file and self._options.requestheader_client_ca_file)
        if self._api is None or not needed:
            return
        try:
            async with asyncio.timeout(SECONDS):
                config_map = msgspec.json.decode(await self._api.get(CONFIG_MAP), type=dict[str, Any])
                self._looked_up = msgspec.convert(config_map.get("data", {}), dict[str, str])
        except Exception as error:
            why = str(error) or f"no answer within {SECONDS:g}s"
            if first and not self._options.authentication_tolerate_lookup_failure:
                raise OptionsError(f"unable to load configmap based request-header-client-ca-file: {why}") from None
            log.warning(
                "Unable to get configmap/extension-apiserver-authentication in kube-system. Usually fixed by 'kubectl "
                "create rolebinding -n kube-system ROLEBINDING_NAME --role=extension-apiserver-authentication-reader "
                "--serviceaccount=YOUR_NS:YOUR_SA'",
                err=why,
            )

    def _use(self, authorities: Authorities) -> None:
        if authorities != self.current:
            self.current = authorities
            self._on_change(authorities)

    def _read(self) -> Authorities:
        options, data = self._options, self._looked_up
        client_ca = _file(options.client_ca_file, "--client-ca-file") or _pem(data, "client-ca-file")
        proxy_ca = _file(options.requestheader_client_ca_file, "--requestheader-client-ca-file")

        def names(key: str) -> tuple[str, ...]:
            """The value of the flag, which is named as the key of the config map, if a flag names the authority."""
            return getattr(options, key.replace("-", "_")) if proxy_ca else _names(data, key)

        return Authorities(
            client_ca=client_ca,
            proxy_ca=proxy_ca or _pem(data, "requestheader-client-ca-file"),
            allowed_names=names("requestheader-allowed-names"),
            username_headers=names("requestheader-username-headers"),
            uid_headers=names("requestheader-uid-headers"),
            group_headers=names("requestheader-group-headers"),
            extra_prefixes=names("requestheader-extra-headers-prefix"),
        )


def _file(file: str, flag: str) -> bytes:
    if not file:
        return b""
    pem = read_bytes(file, flag)
    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise OptionsError(f"{flag}: {file}: {error}") from None
    return pem


def _pem(data: dict[str, str], key: str) -> bytes:
    pem = data.get(key, "").encode()
    try:
        return pem if pem and x509.load_pem_x509_certificates(pem) else b""
    except ValueError as error:
        log.error("The cluster's client authorities are no certificates", err=error, key=key)
        return b""


def _names(data: dict[str, str], key: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(data.get(key) or "[]", type=tuple[str, ...])
    except msgspec.DecodeError as error:
        log.error("The cluster's authentication settings cannot be read", err=error, key=key)
        return ()

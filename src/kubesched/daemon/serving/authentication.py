"""Who makes a request: named by a front proxy, a client certificate or a token; without them it is anonymous."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from kubesched.daemon.serving.authorities import Authorities
from kubesched.daemon.serving.reviews import TokenReviewer, UserInfo

ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))
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

    async def user_of(self, headers: Mapping[str, str], connection: ssl.SSLObject | None) -> UserInfo:
        """Who it is. UnauthorizedError, or ReviewError if that cannot be found out."""
        chain = _chain(connection)
        if chain and _is_issued_by(chain, self._proxy_cas) and (user := self._named_by_proxy(chain[0], headers)):
            return user
        if chain and _is_issued_by(chain, self._client_cas) and (user := _named_in(chain[0])):
            return user
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if self._tokens is not None and scheme.lower() == "bearer" and token.strip():
            found = await self._tokens.user_of(token.strip())
            if found is None:
                raise UnauthorizedError
            return _authenticated(found)
        return ANONYMOUS

    def _named_by_proxy(self, certificate: x509.Certificate, headers: Mapping[str, str]) -> UserInfo | None:
        known, names = self._authorities, _attributes(certificate, NameOID.COMMON_NAME)
        if known.allowed_names and not set(names) & set(known.allowed_names):
            return None
        name = next((headers[header] for header in known.username_headers if headers.get(header)), "")
        if not name:
            return None
        uid = next((headers[header] for header in known.uid_headers if headers.get(header)), "")
        groups = [value for header in known.group_headers for value in _all(headers, header)]
        return _authenticated(UserInfo(name, uid, tuple(groups), tuple(_extra(headers, known.extra_prefixes))))


def _named_in(certificate: x509.Certificate) -> UserInfo | None:
    """The common name is the user, organizations are groups."""
    name = next(iter(_attributes(certificate, NameOID.COMMON_NAME)), "")
    groups = _attributes(certificate, NameOID.ORGANIZATION_NAME)
    return _authenticated(UserInfo(name, groups=tuple(groups))) if name else None


def _authenticated(user: UserInfo) -> UserInfo:
    if _AUTHENTICATED in user.groups:
        return user
    return UserInfo(user.name, user.uid, (*user.groups, _AUTHENTICATED), user.extra)


def _extra(headers: Mapping[str, str], prefixes: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    found: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        for prefix in prefixes:
            if header.lower().startswith(prefix.lower()):
                key = unquote(header[len(prefix) :].lower())
                found[key] = (*found.get(key, ()), value)
    return list(found.items())


def _all(headers: Mapping[str, str], name: str) -> list[str]:
    return [value for header, value in headers.items() if header.lower() == name.lower()]


def _attributes(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]


def _chain(connection: ssl.SSLObject | None) -> list[x509.Certificate]:
    """The client's certificate and, where Python tells, those up to its authority. OpenSSL has verified them all."""
    leaf = connection.getpeercert(binary_form=True) if connection is not None else None
    if not leaf:
        return []
    verified = getattr(connection, "get_verified_chain", None)
    chain: list[bytes] = verified() if verified is not None else [leaf]
    return [x509.load_der_x509_certificate(each) for each in chain or [leaf]]


def _is_issued_by(chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate]) -> bool:
    """Which of the authorities that a handshake accepts it was: they are not trusted in the same matters."""
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

"""Credentials for the API server: tokens and certificates, fixed, or read again when their files may have changed."""

from __future__ import annotations

import base64
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from kubesched.kube.errors import CredentialsError
from kubesched.kube.tls import Certificate, show, stamp

TOKEN_FILE_PERIOD = 50.0
"""Seconds between readings of a token file: client-go's minute, less its leeway of ten seconds."""
CERTIFICATE_FILES_PERIOD = 1.0
"""Seconds between checks whether certificate files were replaced, for each of which a `stat` is enough."""

log = logging.getLogger(__name__)


class Credentials:
    """Credentials for every request. This base class has none."""

    def at_hand(self) -> str | None:
        """The value of the Authorization header, empty if there is none; None if `authorization` has to wait for it.

        Raises CredentialsError.
        """
        return ""

    async def authorization(self) -> str:
        """The value of the Authorization header, after waiting for a plugin or an identity provider."""
        return self.at_hand() or ""

    async def renew(self, refused: str) -> bool:
        """The server answered 401 to this authorization. True if there are other credentials now."""
        return False

    def certificate(self) -> Certificate | None:
        """The client certificate for new connections, as of the last authorization."""
        return None

    async def close(self) -> None:
        """End a plugin or a request that is under way."""


class FixedAuthorization(Credentials):
    """A token or password that never changes."""

    def __init__(self, authorization: str = "") -> None:
        self._authorization = authorization

    def at_hand(self) -> str:
        return self._authorization


def bearer(token: str) -> str:
    """The header value for a token; CredentialsError if it cannot be in a header."""
    if not token.isprintable() or not token.isascii():
        raise CredentialsError("the token contains characters that no token has, such as a line break")
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header value for user and password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class TokenFile(Credentials):
    """A token in a file that another process keeps fresh: a projected service account token, for instance."""

    def __init__(self, path: str, *, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._authorization = ""
        self._read_at = float("-inf")

    def at_hand(self) -> str:
        if self._clock() - self._read_at >= TOKEN_FILE_PERIOD:
            self._read()
        return self._authorization

    async def renew(self, refused: str) -> bool:
        if self._authorization == refused:
            self._read()
        return self._authorization != refused

    def _read(self) -> None:
        """Read the file. If that fails the last token stays in use, which may be valid for longer."""
        try:
            token = Path(self._path).read_text().strip()
            if not token:
                raise CredentialsError(f'read empty token from file "{self._path}"')
            self._authorization = bearer(token)
        except (OSError, UnicodeError, CredentialsError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            if not self._authorization:
                raise CredentialsError(f'failed to read token file "{self._path}": {reason}') from None
            log.error("Unable to rotate token: %s: %s", self._path, reason)
        self._read_at = self._clock()


class CertificateFiles:
    """A client certificate and key in files, read again when they were replaced.

    The two files are replaced one after the other: a certificate is used only with the key that belongs to it.
    """

    def __init__(self, chain_path: str, key_path: str, *, clock: Callable[[], float]) -> None:
        """Raises CredentialsError if they cannot be read."""
        self._paths = (chain_path, key_path)
        self._clock = clock
        self._stamps: object = None
        self._complained_about: object = None
        self._looked_at = float("-inf")
        self._certificate: Certificate | None = None

    def current(self) -> Certificate | None:
        """The certificate. If its files cannot be read again, the last one stays in use."""
        if self._clock() - self._looked_at >= CERTIFICATE_FILES_PERIOD:
            self._look()
            self._looked_at = self._clock()
        return self._certificate

    def look_again(self) -> None:
        """Do not wait for the period to pass."""
        self._looked_at = float("-inf")

    def _look(self) -> None:
        stamps = [stamp(path) for path in self._paths]
        if stamps == self._stamps:
            return
        try:
            chain, key = (Path(path).read_bytes() for path in self._paths)
            certificate = Certificate(chain, key)
            show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
        except (OSError, ValueError) as error:
            self._complain(error, stamps)
            return
        self._certificate, self._stamps = certificate, stamps

    def _complain(self, error: OSError | ValueError, stamps: object) -> None:
        """Log the error once for the same files, which are read every second until they can be used."""
        problem = f"client certificate: {' and '.join(self._paths)}: {getattr(error, 'strerror', None) or error}"
        if self._certificate is None:
            raise CredentialsError(problem)
        if stamps != self._complained_about:
            self._complained_about = stamps
            log.error("A replaced client certificate cannot be used, the last one stays in use: %s", problem)


class WithCertificate(Credentials):
    """Other credentials together with a client certificate."""

    def __init__(self, others: Credentials, files: CertificateFiles | Certificate) -> None:
        self._others = others
        self._files = files

    def at_hand(self) -> str | None:
        return self._others.at_hand()

    async def authorization(self) -> str:
        return await self._others.authorization()

    async def renew(self, refused: str) -> bool:
        before = self.certificate()
        if isinstance(self._files, CertificateFiles):
            self._files.look_again()
        return await self._others.renew(refused) or self.certificate() != before

    def certificate(self) -> Certificate | None:
        return self._files if isinstance(self._files, Certificate) else self._files.current()

    async def close(self) -> None:
        await self._others.close()

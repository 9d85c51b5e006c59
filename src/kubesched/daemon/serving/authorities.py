"""Whose client certificates are accepted, and which proxies may say who the user is.

What the flags leave open, the cluster says: in a config map that the API server keeps for servers like this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from cryptography import x509

from kubesched.daemon.checks import OptionsError, read_bytes
from kubesched.daemon.log import Log
from kubesched.daemon.options import Options
from kubesched.daemon.serving.reviews import SECONDS, ReviewApi

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
        """All that a TLS handshake is to accept."""
        return b"\n".join(filter(None, (self.client_ca, self.proxy_ca)))


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


class AuthoritySource:
    """Reads the authorities from flags, files and the cluster, and reads them again from time to time."""

    def __init__(self, options: Options, api: ReviewApi | None, on_change: Callable[[Authorities], None]) -> None:
        """`on_change` is called whenever they are not what they were."""
        self._options = options
        self._api = None if options.authentication_skip_lookup else api
        self._on_change = on_change
        self._looked_up = _ConfigMap()
        self.current = Authorities()

    async def start(self) -> None:
        """Read them for the first time. OptionsError if a file cannot be read, or the cluster's word was needed."""
        await self._look_up(first=True)
        self._use(self._read())

    async def keep_fresh(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Read them again every minute, for ever."""
        while True:
            await sleep(REFRESH_SECONDS)
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
                self._looked_up = msgspec.json.decode(await self._api.get(CONFIG_MAP), type=_ConfigMap)
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

    def _use(self, found: Authorities) -> None:
        if found != self.current:
            self.current = found
            self._on_change(found)

    def _read(self) -> Authorities:
        options, data = self._options, self._looked_up.data
        client_ca = _file(options.client_ca_file, "--client-ca-file") or _pem(data, "client-ca-file")
        proxy_ca = _file(options.requestheader_client_ca_file, "--requestheader-client-ca-file")

        def names(key: str) -> tuple[str, ...]:
            """The flags are called as the keys of the config map. Their word counts if they name the authority."""
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

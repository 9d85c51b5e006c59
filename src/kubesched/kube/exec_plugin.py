"""Credentials from a command: exec plugins as kubectl and client-go run them, kept until they expire."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubesched.kube.credentials import Credentials, bearer
from kubesched.kube.errors import CredentialsError
from kubesched.kube.kubeconfig import ExecPlugin
from kubesched.kube.observer import Observer
from kubesched.kube.shared_work import SharedWork
from kubesched.kube.tls import Certificate

TIMEOUT = 60.0
"""Seconds for a plugin that does not interact with a user. client-go waits for ever, which a scheduler must not."""
_HELP = (
    "\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.\n\n"
    "To learn more about this feature, consult the documentation available at:\n"
    "      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
)

log = logging.getLogger(__name__)


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecCredentials(Credentials):
    """Runs the plugin when there are no credentials, when they expired, and when the server refused them."""

    def __init__(
        self,
        plugin: ExecPlugin,
        cluster: Mapping[str, Any],
        *,
        environ: Mapping[str, str],
        observer: Observer,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        is_terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
        timeout: float = TIMEOUT,
    ) -> None:
        """`cluster` is for a plugin with `provideClusterInfo`."""
        self._plugin = plugin
        self._cluster = cluster
        self._environ = environ
        self._observer = observer
        self._now = wall_clock
        self._is_terminal = is_terminal
        self._timeout = timeout
        self._runs = SharedWork(self._run)
        self._expires: datetime | None = None
        self._authorization: str | None = None
        self._certificate: Certificate | None = None

    def at_hand(self) -> str | None:
        has_expired = self._expires is not None and self._now() > self._expires
        return None if has_expired else self._authorization

    async def authorization(self) -> str:
        if self.at_hand() is None:
            await self._runs.wait()
        return self._authorization or ""

    async def renew(self, refused: str) -> bool:
        before = self._certificate
        if self._authorization == refused:
            try:
                await self._runs.wait()
            except CredentialsError as error:
                log.error("refreshing credentials: %s", error)
        return self._authorization != refused or self._certificate != before

    def certificate(self) -> Certificate | None:
        return self._certificate

    async def close(self) -> None:
        await self._runs.end()

    async def _run(self) -> None:
        status = self._check(await self._output())
        chain, key = status.client_certificate_data, status.client_key_data
        self._authorization = bearer(status.token) if status.token else ""
        self._certificate = Certificate(chain.encode(), key.encode()) if chain else None
        expires = status.expiration_timestamp
        self._expires = expires if expires is None or expires.tzinfo else expires.replace(tzinfo=UTC)

    def _is_interactive(self) -> bool:
        mode = self._plugin.interactive_mode or "IfAvailable"
        if mode == "Never":
            return False
        if self._is_terminal():
            return True
        if mode == "Always":
            raise CredentialsError("exec plugin cannot support interactive mode: standard input is not a terminal")
        return False

    async def _output(self) -> bytes:
        command, interactive = self._plugin.command, self._is_interactive()
        spec: dict[str, Any] = {"interactive": interactive}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = self._cluster
        info = {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}
        environ = {
            **self._environ,
            **{variable.name: variable.value for variable in self._plugin.env},
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                command,
                *self._plugin.args,
                env=environ,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                # In a group of its own, so that its children can be ended with it; a terminal needs this process's.
                start_new_session=not interactive,
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:  # it may have begun already, although no process was returned
            with contextlib.suppress(OSError):
                process = await starting
                _end(process, whole_group=not interactive)
                await process.communicate()
            raise
        except OSError as error:
            self._observer.plugin_called(1, "plugin_not_found_error")
            if isinstance(error, FileNotFoundError):
                raise CredentialsError(f"exec: executable {command} not found{_HELP}{self._hint()}") from None
            raise CredentialsError(f"exec: {command}: {error.strerror}") from None
        return await self._wait_for(process, None if interactive else self._timeout)

    async def _wait_for(self, process: asyncio.subprocess.Process, timeout: float | None) -> bytes:
        command = self._plugin.command
        try:
            async with asyncio.timeout(timeout):
                output, _ = await process.communicate()
        except BaseException as error:
            _end(process, whole_group=timeout is not None)
            await process.wait()
            self._observer.plugin_called(1, "client_internal_error")
            if isinstance(error, TimeoutError):
                raise CredentialsError(f"exec: executable {command} did not end within {timeout:g} s") from None
            raise
        if process.returncode:
            self._observer.plugin_called(process.returncode, "plugin_execution_error")
            raise CredentialsError(f"exec: executable {command} failed with exit code {process.returncode}")
        self._observer.plugin_called(0, "no_error")
        return output

    def _check(self, output: bytes) -> _Status:
        try:
            credential = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise CredentialsError(f"exec plugin {self._plugin.command}: decoding stdout: {error}") from None
        if credential.kind != "ExecCredential" or credential.api_version != self._plugin.api_version:
            raise CredentialsError(
                f"exec plugin is configured to use API version {self._plugin.api_version}, "
                f"plugin returned version {credential.api_version} of kind {credential.kind}"
            )
        status = credential.status
        if status is None:
            raise CredentialsError("exec plugin didn't return a status field")
        if not (status.token or status.client_certificate_data or status.client_key_data):
            raise CredentialsError("exec plugin didn't return a token or cert/key pair")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise CredentialsError("exec plugin returned only certificate or key, not both")
        return status

    def _hint(self) -> str:
        """The install hint, without characters that could move the cursor of a terminal."""
        hint = "".join(
            char if char in "\t\n\v\f\r" or unicodedata.category(char)[0] in "LMNPSZ" else f"U+{ord(char):04X}"
            for char in self._plugin.install_hint
        )
        return f"\n\n{hint}" if hint else ""


def _end(process: asyncio.subprocess.Process, *, whole_group: bool) -> None:
    try:
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass  # it ended by itself just now

"""Exec plugins: real scripts, run when needed and no more often."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kube.certificates import authority
from tests.unit.kube.scripted_server import answering, serving, talking_to

from kubesched.kube.authentication import credentials_for
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.errors import CredentialsError
from kubesched.kube.exec_plugin import ExecCredentials
from kubesched.kube.kubeconfig import ExecPlugin, ExecVariable, KubeconfigUser
from kubesched.kube.observer import Observer
from kubesched.kube.tls import ServerTrust

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
START = datetime(2026, 1, 1, tzinfo=UTC)


class Plugin:
    """A shell script that counts its runs and prints what a test says."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / "plugin"
        self.now = START
        self.calls: list[tuple[int, str]] = []
        self.script('cat "$0.out"')

    def script(self, text: str) -> None:
        self.path.write_text(f"#!/bin/sh\necho run >> {self._directory}/runs\n{text}\n")
        self.path.chmod(0o755)

    def prints(self, version: str = V1, **status: Any) -> None:
        answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        Path(f"{self.path}.out").write_text(json.dumps(answer))

    @property
    def runs(self) -> int:
        runs = self._directory / "runs"
        return len(runs.read_text().split()) if runs.exists() else 0

    def credentials(
        self, *, version: str = V1, terminal: bool = False, timeout: float = 30, mode: str = "Never", **more: Any
    ) -> ExecCredentials:
        plugin = ExecPlugin(**{"command": str(self.path), "api_version": version, "interactive_mode": mode, **more})
        plugin_called = self.calls

        class Counting(Observer):
            def plugin_called(self, exit_code: int, status: str) -> None:
                plugin_called.append((exit_code, status))

        return ExecCredentials(
            plugin,
            {"server": "https://a"},
            environ=os.environ,
            observer=Counting(),
            wall_clock=lambda: self.now,
            is_terminal=lambda: terminal,
            timeout=timeout,
        )


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def failure(credentials: ExecCredentials) -> str:
    with pytest.raises(CredentialsError) as caught:
        asyncio.run(credentials.authorization())
    return str(caught.value)


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_token_is_kept_until_it_expires(plugin: Plugin, version: str) -> None:
    async def main() -> None:
        credentials = plugin.credentials(version=version)
        plugin.prints(version, token="one", expirationTimestamp=(START + timedelta(minutes=5)).isoformat())
        assert await credentials.authorization() == "Bearer one"
        plugin.prints(version, token="two")
        plugin.now += timedelta(minutes=4)
        assert await credentials.authorization() == "Bearer one"
        plugin.now += timedelta(minutes=2)
        assert await credentials.authorization() == "Bearer two"
        plugin.now += timedelta(days=999)
        assert await credentials.authorization() == "Bearer two"

    asyncio.run(main())
    assert plugin.runs == 2
    assert plugin.calls == [(0, "no_error"), (0, "no_error")]


def test_plugin_runs_once_for_many_who_wait(plugin: Plugin) -> None:
    async def main() -> None:
        plugin.prints(token="t")
        credentials = plugin.credentials()
        assert set(await asyncio.gather(*(credentials.authorization() for _ in range(20)))) == {"Bearer t"}

    asyncio.run(main())
    assert plugin.runs == 1


def test_request_that_gives_up_waiting_leaves_the_plugin_to_the_next(plugin: Plugin, tmp_path: Path) -> None:
    go = tmp_path / "go"
    plugin.prints(token="t")
    plugin.script(f'while [ ! -e {go} ]; do sleep 0.01; done; cat "$0.out"')

    async def main() -> None:
        credentials = plugin.credentials()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await credentials.authorization()
        go.touch()
        assert await credentials.authorization() == "Bearer t"

    asyncio.run(main())
    assert plugin.runs == 1


def test_refused_token_is_asked_for_again(plugin: Plugin) -> None:
    async def main() -> None:
        plugin.prints(token="old")
        credentials = plugin.credentials()
        await credentials.authorization()
        plugin.prints(token="new")
        scripts = [answering(401), answering(200, b"ok")]
        async with serving(*scripts) as server, talking_to(server, credentials=credentials) as client:
            assert await client.get("/") == b"ok"
            assert [request.headers["authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]

    asyncio.run(main())
    assert plugin.runs == 2


def test_plugin_that_fails_to_renew_leaves_the_old_token(plugin: Plugin) -> None:
    async def main() -> None:
        plugin.prints(token="old")
        credentials = plugin.credentials()
        await credentials.authorization()
        plugin.script("exit 3")
        assert not await credentials.renew("Bearer old")
        assert await credentials.authorization() == "Bearer old"

    asyncio.run(main())


def test_certificate_of_a_plugin_is_shown(plugin: Plugin) -> None:
    pair = authority().issue("client")
    plugin.prints(clientCertificateData=pair.certificate.decode(), clientKeyData=pair.key.decode())
    credentials = plugin.credentials()
    assert asyncio.run(credentials.authorization()) == ""
    certificate = credentials.certificate()
    assert certificate is not None
    assert (certificate.chain, certificate.key) == (pair.certificate, pair.key)


def test_plugin_is_told_what_it_needs_to_know(plugin: Plugin, tmp_path: Path) -> None:
    plugin.script(
        f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; echo "$1 $2 $COLOUR" > {tmp_path}/args; cat "$0.out"'
    )
    plugin.prints(token="t")
    user = KubeconfigUser(
        exec=ExecPlugin(
            command=str(plugin.path),
            args=("a", "b c"),
            env=(ExecVariable(name="COLOUR", value="blue"),),
            api_version=V1,
            interactive_mode="IfAvailable",
            provide_cluster_info=True,
        )
    )
    settings = ConnectionSettings(
        server="https://a:6443",
        user=user,
        trust=ServerTrust(ca_data=b"PEM", server_name="n"),
        exec_extension={"audience": "x"},
    )
    credentials = credentials_for(settings, os.environ, observer=Observer(), clock=time.monotonic)
    asyncio.run(credentials.authorization())
    assert (tmp_path / "args").read_text() == "a b c blue\n"
    info = json.loads((tmp_path / "info").read_text())
    assert (info["apiVersion"], info["kind"]) == (V1, "ExecCredential")
    assert info["spec"]["cluster"] == {
        "server": "https://a:6443",
        "tls-server-name": "n",
        "certificate-authority-data": "UEVN",
        "config": {"audience": "x"},
    }


def test_plugin_that_always_needs_a_terminal_is_refused_without_one(plugin: Plugin) -> None:
    words = failure(plugin.credentials(mode="Always"))
    assert words == "exec plugin cannot support interactive mode: standard input is not a terminal"
    assert plugin.runs == 0


def test_missing_plugin_comes_with_its_install_hint(plugin: Plugin) -> None:
    words = failure(plugin.credentials(command="/no/such-plugin", install_hint="try \x1b[31mharder"))
    assert words.startswith("exec: executable /no/such-plugin not found\n")
    assert words.endswith("try U+001B[31mharder")
    assert plugin.calls == [(1, "plugin_not_found_error")]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 7", "failed with exit code 7"),
        ("echo rubbish", "decoding stdout"),
        ('echo \'{"kind":"ExecCredential","apiVersion":"x/v9"}\'', "plugin returned version x/v9"),
        (f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}"}}\'', "didn't return a status field"),
        (
            f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}","status":{{}}}}\'',
            "didn't return a token or cert/key",
        ),
        (
            f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}","status":{{"clientKeyData":"k"}}}}\'',
            "only certificate or key, not both",
        ),
    ],
)
def test_bad_plugins_are_said_to_be(plugin: Plugin, script: str, words: str) -> None:
    plugin.script(script)
    assert words in failure(plugin.credentials())


def test_plugin_that_hangs_is_given_up(plugin: Plugin) -> None:
    plugin.script("exec sleep 600")
    assert "did not end within 0.1 s" in failure(plugin.credentials(timeout=0.1))
    assert plugin.calls == [(1, "client_internal_error")]


def test_plugin_is_ended_with_all_it_started(plugin: Plugin, tmp_path: Path) -> None:
    started = tmp_path / "child"
    plugin.script(f"sleep 600 & echo $! > {started}.new; mv {started}.new {started}; wait")

    async def main() -> None:
        credentials = plugin.credentials()
        task = asyncio.create_task(credentials.authorization())
        async with asyncio.timeout(20):
            while not started.exists():
                await asyncio.sleep(0.01)
        await credentials.close()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    child = Path("/proc", started.read_text().strip())
    for _ in range(500):
        if not child.exists() or child.joinpath("stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.01)
    else:
        raise AssertionError("the child of the plugin lives on")


@pytest.mark.parametrize("turns", range(1, 8))
def test_plugin_that_is_only_just_started_is_ended_too(plugin: Plugin, tmp_path: Path, turns: int) -> None:
    plugin.script("sleep 600 & wait")

    async def main() -> None:
        credentials = plugin.credentials()
        task = asyncio.create_task(credentials.authorization())
        for _ in range(turns):
            await asyncio.sleep(0)
        await credentials.close()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    for _ in range(500):
        if not any(str(plugin.path).encode() in command for command in _command_lines()):
            break
        time.sleep(0.01)
    else:
        raise AssertionError("the plugin lives on")


def _command_lines() -> list[bytes]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((process / "cmdline").read_bytes())
    return found

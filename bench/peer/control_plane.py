"""A real control plane on this machine: etcd, kube-apiserver and, where wanted, kube-controller-manager."""

from __future__ import annotations

import base64
import datetime
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from bench.peer.client import Access, is_ready
from bench.processes import Process, free_port, wait_for
from kubesched.kube.self_signed import self_signed_pair

ASSETS = "KUBEBUILDER_ASSETS"
ADMIN, SCHEDULER = "admin-token", "scheduler-token"
_TOKENS = f'{ADMIN},admin,1,"system:masters"\n{SCHEDULER},system:kube-scheduler,2,\n'
WITHOUT_ADMISSION = ("ServiceAccount", "TaintNodesByCondition", "Priority")
"""As upstream's harness has it: no service accounts, nodes that no controller watches, numbers as priority."""
_LONGEST_START = 120.0
_TRIES = 3
_KEY = base64.b64encode(b"any").decode()
_ETCD_DATA = "etcd-data-"


class MissingBinaryError(Exception):
    """A binary that is needed is not there."""


def binary(name: str) -> Path:
    """Where KUBEBUILDER_ASSETS has it. Raises MissingBinaryError in words for people."""
    folder = os.environ.get(ASSETS, "")
    if not folder:
        raise MissingBinaryError(f"{ASSETS} is not set: it names the folder with {name} and the like")
    path = Path(folder) / name
    if not os.access(path, os.X_OK):
        raise MissingBinaryError(f"there is no {name} in {folder} ({ASSETS})")
    return path


class Server(Process):
    """A program of the control plane, with a log of its own."""

    def __init__(self, name: str, log: Path, *flags: str, environment: Mapping[str, str] | None = None) -> None:
        self.name, self.log = name, log
        with log.open("a") as output:
            command = [str(binary(name)), *flags]
            super().__init__(subprocess.Popen(command, stdout=output, stderr=output, text=True, env=environment))

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-1500:]


class ControlPlane:
    """Ends with the `with` block, each process by its own id."""

    def __init__(
        self,
        folder: Path,
        *,
        gates: Mapping[str, bool] | None = None,
        controllers: Sequence[str] = (),
        served: Sequence[str] = (),
        without_admission: Sequence[str] = WITHOUT_ADMISSION,
        flags: Sequence[str] = (),
    ) -> None:
        """`folder` is an empty one for data, keys and logs; no controllers means no controller manager.

        `served` are versions of the API that are not served by default; `flags` are more of the API server's.
        """
        self._flags = flags
        self.folder = folder
        self._served = served
        self._without_admission = without_admission
        self._gates = dict(gates or {})
        self._controllers = controllers
        self._running = ExitStack()

    def __enter__(self) -> Self:
        for needed in ("etcd", "kube-apiserver"):
            binary(needed)
        self._write_keys()
        with ExitStack() as running:
            self._start(running)
            if self._controllers:
                running.enter_context(self._controller_manager())
            self._running = running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()
        for data in self.folder.glob(f"{_ETCD_DATA}*"):
            shutil.rmtree(data, ignore_errors=True)

    def _start(self, running: ExitStack) -> None:
        """A port that was free a moment ago may have been taken: then with others."""
        for attempt in range(_TRIES):
            self._etcd_port, self._port = free_port(), free_port()
            self.access = Access(f"https://127.0.0.1:{self._port}", ADMIN, self.folder / "server.crt")
            self.etcd = running.enter_context(self._etcd(free_port(), attempt))
            self.api_server = running.enter_context(self._api_server())
            self._wait_for_api_server()
            if self.api_server.is_alive and self.etcd.is_alive:
                return
            self.api_server.end()
            self.etcd.end()
        raise RuntimeError(f"the API server ended:\n{self.api_server.last_words()}\n{self.etcd.last_words()}")

    def start_api_server_again(self) -> None:
        """Where the last one was, which has ended."""
        self.api_server = self._running.enter_context(self._api_server())
        self._wait_for_api_server()

    def forget_history(self) -> None:
        """The API server starts again after etcd was compacted: no watch can go on from where it was."""
        self.api_server.end()
        self.compact()
        self.start_api_server_again()

    def compact(self) -> None:
        """Have etcd forget all but the present, as it does of itself every few minutes."""
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv"
        present = _post(f"{url}/range", {"key": _KEY})["header"]["revision"]
        _post(f"{url}/compaction", {"revision": present, "physical": True})

    def _wait_for_api_server(self) -> None:
        wait_for(self._is_settled, _LONGEST_START, "the API server's start", every=0.2)

    def _is_settled(self) -> bool:
        return is_ready(self.access) or not self.api_server.is_alive or not self.etcd.is_alive

    def _etcd(self, peer_port: int, attempt: int) -> Server:
        url = f"http://127.0.0.1:{self._etcd_port}"
        return Server(
            "etcd",
            self.folder / "etcd.log",
            f"--data-dir={self.folder / f'{_ETCD_DATA}{attempt}'}",
            f"--listen-client-urls={url}",
            f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
            "--unsafe-no-fsync",
            # etcd insists on it; one that is built from what Kubernetes vendors may not know the flag.
            environment=os.environ | {"ETCD_ADVERTISE_CLIENT_URLS": url},
        )

    def _api_server(self) -> Server:
        keys = {name: self.folder / name for name in ("server.crt", "server.key", "tokens.csv")}
        return Server(
            "kube-apiserver",
            self.folder / "kube-apiserver.log",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={keys['server.crt']}",
            f"--tls-private-key-file={keys['server.key']}",
            f"--client-ca-file={keys['server.crt']}",
            f"--token-auth-file={keys['tokens.csv']}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes",
            f"--service-account-key-file={keys['server.crt']}",
            f"--service-account-signing-key-file={keys['server.key']}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            *([f"--runtime-config={','.join(f'{each}=true' for each in self._served)}"] if self._served else []),
            *([f"--disable-admission-plugins={','.join(self._without_admission)}"] if self._without_admission else []),
            *_gate_flags(self._gates),
            *self._flags,
        )

    def _controller_manager(self) -> Server:
        return Server(
            "kube-controller-manager",
            self.folder / "kube-controller-manager.log",
            f"--kubeconfig={self.kubeconfig(ADMIN)}",
            f"--controllers={','.join(self._controllers)}",
            f"--service-account-private-key-file={self.folder / 'server.key'}",
            f"--root-ca-file={self.folder / 'server.crt'}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
            *_gate_flags(self._gates),
        )

    def kubeconfig(self, token: str, name: str = "", *, url: str = "") -> Path:
        """A file with which the owner of the token gets in, at another address if need be."""
        path = self.folder / f"{name or token}.kubeconfig"
        cluster = {"server": url or self.access.url, "certificate-authority": str(self.access.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": token}}],
        }
        path.write_text(yaml.safe_dump(content))
        path.chmod(0o600)
        return path

    def _write_keys(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        pair = self_signed_pair(("127.0.0.1", "localhost", "kubernetes"), common_name="kube-apiserver", now=now)
        for name, content in (("server.crt", pair.chain), ("server.key", pair.key), ("tokens.csv", _TOKENS.encode())):
            path = self.folder / name
            path.write_bytes(content)
            path.chmod(0o600)


def _post(url: str, body: dict[str, Any]) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=30) as answer:
        return json.loads(answer.read())


def _gate_flags(gates: Mapping[str, bool]) -> list[str]:
    return [f"--feature-gates={','.join(f'{gate}={str(on).lower()}' for gate, on in gates.items())}"] if gates else []

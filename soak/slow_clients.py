"""Strangers at the secure port: hundreds of connections that say little, and a probe that must get through."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
import urllib.request

SLOW = 300
_FROM = "127.0.0.2"
"""Another address than that of the probe, as hostile clients have."""


class SlowClients:
    """Keeps so many connections open to a port, opening anew what is closed, and probes /livez beside them."""

    def __init__(self, port: int, count: int = SLOW) -> None:
        self._port, self._count = port, count
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._live)
        self.opened = 0
        self.probes = 0
        self.failures: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def _live(self) -> None:
        held: list[socket.socket] = []
        while not self._ending.wait(1.0):
            held = [each for each in held if _says_a_little(each)]
            while len(held) < self._count and not self._ending.is_set():
                try:
                    held.append(socket.create_connection(("127.0.0.1", self._port), 5.0, source_address=(_FROM, 0)))
                except OSError:
                    break
                self.opened += 1
            self._probe()
        for each in held:
            each.close()

    def _probe(self) -> None:
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        self.probes += 1
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{self._port}/livez", timeout=20, context=trusting) as said:
                said.read()
        except OSError as error:
            self.failures.append(f"{time.strftime('%H:%M:%S')}: {error}")


def _says_a_little(client: socket.socket) -> bool:
    """Whether the connection is still there to say the next byte of a handshake to."""
    try:
        client.setblocking(False)
        client.send(b"\x16")
        with contextlib.suppress(BlockingIOError):
            if client.recv(1) == b"":
                raise ConnectionResetError
    except OSError:
        client.close()
        return False
    return True

"""Servers on the way to an extender: one that hangs up at the wrong moment, and proxies that open tunnels."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable


class HangingUp:
    """Answers the first call of each connection, and hangs up on the second after it has read it."""

    def __init__(self) -> None:
        self.calls = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:
                return
            with connected, connected.makefile("rb") as stream:
                if _has_read_a_call(stream.readline, stream.read):
                    self.calls += 1
                    connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    self.calls += _has_read_a_call(stream.readline, stream.read)

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


def _has_read_a_call(line: Callable[[], bytes], read: Callable[[int], bytes]) -> bool:
    length = 0
    while (header := line().strip().lower()) != b"":
        length = int(header.split(b":")[1]) if header.startswith(b"content-length:") else length
    return bool(read(length)) if length else False


class Impatient:
    """Answers as soon as it knows how long the question is: too long."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connected, _ = self._listening.accept()
        with connected, connected.makefile("rb", buffering=0) as stream:
            while stream.readline().strip():
                pass
            connected.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")

    def stop(self) -> None:
        self._thread.join()
        self._listening.close()


class Tunnels:
    """A proxy that leads to one port whatever it is asked for, by HTTP CONNECT or by SOCKS5."""

    def __init__(self, port: int) -> None:
        self.asked: list[bytes] = []
        self.refuses = False
        self._there = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def _serve(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._lead, args=(connected,)))
            self._threads[-1].start()

    def _lead(self, near: socket.socket) -> None:
        with near:
            first = near.recv(4096)
            if first[0] == 5:
                near.sendall(b"\x05\x00")
                self.asked.append(near.recv(4096))
                near.sendall(b"\x05\x00\x00\x01\0\0\0\0")
                near.sendall(b"\0\0")
            else:
                self.asked.append(first)
                near.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n" if self.refuses else b"HTTP/1.1 200 OK\r\n\r\n")
            if self.refuses:
                return
            with socket.create_connection(("127.0.0.1", self._there)) as far:
                back = threading.Thread(target=_pump, args=(far, near))
                back.start()
                _pump(near, far)
                back.join()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of them hung up

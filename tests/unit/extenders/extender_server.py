"""A real HTTP server that is an extender, and decisions made with it."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Iterable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import uvloop
from tests.builders import Json, make_cluster

from kubesched import config as configuration
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.extenders.http_extender import HTTPExtender, close_all, extenders_of
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.extender import AnswersMissingError, ExtenderAnswers, ignoring_managed_resources
from kubesched.framework.plugin import PluginContext
from kubesched.framework.profile import Profile
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.attempt.attempt import Asking, Attempt
from kubesched.scheduler.attempt.waiting_attempts import answer
from kubesched.scheduler.scheduler import Scheduler
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

T = TypeVar("T")
Answers = Callable[[Json], Any]

POD = make_pod("p").build()
A, B, C = make_node("a"), make_node("b"), make_node("c")


class Request(NamedTuple):
    """What was asked, apart from the question."""

    line: str
    headers: Message


class Redirect(NamedTuple):
    """An answer that leads elsewhere."""

    status: int
    location: str


Answer = Answers | Redirect | bytes | int


class _Quiet(ThreadingHTTPServer):
    """Says nothing about clients that did not wait for their answer: some tests are about those."""

    request_queue_size = 100

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ExtenderServer:
    """Answers by verb with what a test says, and remembers what it was asked. It is a proxy, too, if it is used so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Json]] = []
        self.requests: list[Request] = []
        self.answers: dict[str, Answer] = {}
        self.connections = 0
        """How many there have been."""
        self.released = Event()
        """Ends answers that never come."""
        self._open: list[socket.socket] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                server.connections += 1
                server._open.append(self.request)
                super().setup()

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                verb = urlsplit(self.path).path.removeprefix("/scheduler/")
                server.asked.append((verb, question))
                self._answer(verb, question)

            def do_GET(self) -> None:
                self._answer(urlsplit(self.path).path.removeprefix("/scheduler/"), {})

            def _answer(self, verb: str, question: Json) -> None:
                server.requests.append(Request(f"{self.command} {self.path}", self.headers))
                server.reply(self, server.answers[verb], question)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._handler = Handler
        self._http = _Quiet(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._http.server_port}/scheduler"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.released.set()
        self.hang_up()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def speak_tls(self, context: ssl.SSLContext) -> None:
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")

    def speak_http_1_0(self) -> None:
        """Then a connection is good for one call."""
        self._handler.protocol_version = "HTTP/1.0"

    @property
    def port(self) -> int:
        return self._http.server_port

    def hang_up(self) -> None:
        """On all who are still connected."""
        for connected in self._open:
            with contextlib.suppress(OSError):  # it was they who hung up
                connected.shutdown(socket.SHUT_RDWR)

    def reply(self, handler: BaseHTTPRequestHandler, answer: Answer, question: Json) -> None:
        if isinstance(answer, int):
            handler.send_error(answer)
            return
        if isinstance(answer, Redirect):
            handler.send_response(answer.status)
            handler.send_header("Location", answer.location)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        body = answer if isinstance(answer, bytes) else json.dumps(answer(question)).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def never(self, question: Json) -> None:
        """An answer that does not come."""
        self.released.wait(30)

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


def settings(*extenders: Json) -> configuration.SchedulerConfiguration:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return configuration.from_plain({**header, "extenders": list(extenders)})


def decide(
    pod: PodBuilder | Any, *objects: KubeObject | PodBuilder | NodeBuilder, by: list[Json], explain: bool = False
) -> Decision:
    """The decision on a cluster of these objects, with these extenders."""
    config = ignoring_managed_resources(settings(*by))
    profiles = [Profile(profile, in_tree(), PluginContext()) for profile in config.profiles]
    extenders = extenders_of(config)
    engine = Engine(make_cluster(*objects), profiles, lambda among: 0, extenders=extenders)
    pod = pod.build() if isinstance(pod, PodBuilder) else pod
    return asked(lambda: decided(engine, pod, engine.answers_for(pod), explain=explain), extenders)


async def decided(engine: Engine, pod: Pod, answers: ExtenderAnswers | None, *, explain: bool = False) -> Decision:
    """The decision when all questions are answered."""
    while True:
        try:
            return engine.decide(pod, explain=explain, extender_answers=answers)
        except AnswersMissingError as missing:
            await answer(missing.questions)


async def decide_attempt(scheduler: Scheduler, attempt: Attempt) -> None:
    """The same for an attempt of a scheduler."""
    scheduler.decide(attempt)
    while isinstance(attempt.state, Asking):
        await answer(attempt.state.questions)
        scheduler.decide(attempt)


def asked(question: Callable[[], Coroutine[Any, Any, T]], extenders: Iterable[HTTPExtender]) -> T:
    """What comes of asking these extenders, which hang up afterwards."""

    async def ask() -> T:
        try:
            return await question()
        finally:
            await close_all(extenders)

    return uvloop.run(ask())


def passing(*names: str, **more: Any) -> Answers:
    return lambda question: {"NodeNames": list(names), **more}


def filtering(server: ExtenderServer, **more: Any) -> Json:
    return {"urlPrefix": server.url, "filterVerb": "filter", "nodeCacheCapable": True, **more}


def assert_ends_with_error(decision: Decision, *words: str) -> None:
    assert decision.outcome is Outcome.ERROR
    assert decision.node == ""
    for word in words:
        assert word in decision.message

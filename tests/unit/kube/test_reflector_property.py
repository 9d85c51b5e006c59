"""Whatever a server and the network do, a reflector ends up knowing the truth, and its callbacks always add up."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.kube.memory_server import EXPIRED, TOO_LARGE, MemoryServer, MemoryStream, bookmark, error_event
from tests.unit.kube.reflecting import Reflecting

from kubesched.kube.errors import ApiStatusError, KubeError, UnreachableError

names = st.sampled_from("abcde")
LOST = UnreachableError("the connection was lost")
FAILURES = [LOST, EXPIRED, TOO_LARGE, ApiStatusError(429, "TooManyRequests", "slow down"), ApiStatusError(500)]


class ReflectorMachine(RuleBasedStateMachine):
    """A server to which anything happens, and a reflector that follows it. The view checks every callback."""

    @initialize(streams=st.booleans(), page_size=st.sampled_from([0, 1, 2]), first=st.lists(names, unique=True))
    def start(self, streams: bool, page_size: int, first: list[str]) -> None:
        self.server = MemoryServer(streams_lists=streams, page_size=page_size, version=2**60)
        for name in first:
            self.server.put(name)
        self.it = Reflecting(self.server)

    @rule(name=names, value=st.integers(0, 3))
    def put(self, name: str, value: int) -> None:
        self.server.put(name, value=value)

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.server.delete(data.draw(st.sampled_from(sorted(self.server.objects))))

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def recreate(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.server.objects)))
        self.server.delete(name)
        self.server.put(name, again=True)

    @rule(name=names)
    def live_shortly(self, name: str) -> None:
        self.server.put(name)
        self.server.delete(name)

    @rule()
    def run(self) -> None:
        self.it.run()

    @rule(seconds=st.sampled_from([0.5, 5.0, 200.0]))
    def pass_time(self, seconds: float) -> None:
        self.it.pass_time(seconds)

    @rule(error=st.sampled_from([None, LOST]))
    def drop(self, error: KubeError | None) -> None:
        self.server.drop(error)

    @rule()
    def compact(self) -> None:
        self.server.compact()

    @rule()
    def send_bookmark(self) -> None:
        self.server.advance()
        for stream in self.server.streams:
            stream.send(*stream.held, bookmark(self.server.version))
            stream.held.clear()

    @rule(failures=st.lists(st.sampled_from(FAILURES), max_size=4))
    def fail(self, failures: list[KubeError]) -> None:
        self.server.failures = list(failures)

    @rule()
    def expire_within_the_stream(self) -> None:
        for stream in list(self.server.streams):
            self.server.streams.remove(stream)
            stream.send(error_event(EXPIRED))

    @rule(data=st.data())
    def lose_the_past(self, data: st.DataObject) -> None:
        """The reflector must notice before the new past is as long as the old one: nobody could tell them apart."""
        self.settle()
        kept = (
            data.draw(st.lists(st.sampled_from(sorted(self.server.objects)), unique=True))
            if self.server.objects
            else []
        )
        self.server.restart_from_backup(kept)
        self.server.failures = []
        self.it.settle()

    @rule(how=st.sampled_from(["swapped", "twice", "once"]))
    def deliver(self, how: str) -> None:
        """Events go out once, or twice, or two of them in the wrong order."""
        self._flush()
        ways: dict[str, Callable[[MemoryStream, bytes], None]] = {
            "once": MemoryStream.send,
            "twice": _twice,
            "swapped": _swapped,
        }
        self.server.mangle = ways[how]

    def _flush(self) -> None:
        for stream in self.server.streams:
            stream.send(*stream.held)
            stream.held.clear()

    @rule()
    def relist(self) -> None:
        self.it.start_relist()

    @rule()
    def settle(self) -> None:
        self._flush()
        self.it.settle()
        self._flush()
        self.it.settle()
        self.it.assert_knows_the_truth()
        assert self.it.reflector.has_synced

    @invariant()
    def view_is_what_the_reflector_thinks_it_is(self) -> None:
        it = getattr(self, "it", None)
        if it is not None:
            assert {f"ns/{name}": obj for name, obj in it.view.objects.items()} == dict(it.reflector.objects)

    def teardown(self) -> None:
        if hasattr(self, "it"):
            self.settle()
            self.it.close()


def _twice(stream: MemoryStream, line: bytes) -> None:
    stream.send(line, line)


def _swapped(stream: MemoryStream, line: bytes) -> None:
    """Both in one go: what is lost between them could not be known."""
    stream.held.append(line)
    if len(stream.held) == 2:
        stream.send(*reversed(stream.held))
        stream.held.clear()


TestReflector = ReflectorMachine.TestCase
TestReflector.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

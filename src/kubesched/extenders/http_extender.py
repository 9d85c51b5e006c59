"""Extenders over HTTP, as a configuration names them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import msgspec

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.config.configuration import ExtenderConfig
from kubesched.extenders import wire
from kubesched.extenders.client import ExtenderClient, PostError, without_password
from kubesched.framework.extender import ExtenderError, Filtered, NodeVictims, SparedVictims
from kubesched.kube.originals import Originals, is_mentioned, managed_resources

DEFAULT_TIMEOUT = 5.0
log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


@dataclass(slots=True)
class AnswerTimes:
    """How long answers to one verb took, failures included."""

    questions: int = 0
    failures: int = 0
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """Seconds per question."""
        return self.seconds / max(self.questions, 1)


class HTTPExtender:
    """One extender of a configuration. It waits for an answer no longer than its timeout."""

    def __init__(self, config: ExtenderConfig, originals: Originals | None = None) -> None:
        """`originals` has objects as the API server has them.

        ExtenderSettingsError if its address, a proxy on the way or its certificates cannot be used.
        """
        self.name = without_password(config.url_prefix)
        self.ignorable = config.ignorable
        self.weight = config.weight
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.preempts = bool(config.preempt_verb)
        self.binds = bool(config.bind_verb)
        self.keeps_accounts = self.binds or any(resource.ignored_by_scheduler for resource in config.managed_resources)
        self.times: dict[str, AnswerTimes] = {}
        """By verb, as the configuration calls it."""
        self._config = config
        self._managed = managed_resources(config)
        self._questions = wire.ExtenderRequests(names_only=config.node_cache_capable, originals=originals)
        self._client = ExtenderClient(
            config.url_prefix,
            timeout=float(config.http_timeout) or DEFAULT_TIMEOUT,
            tls=config.tls_config,
            skip_verify=config.enable_https,
        )

    def is_interested(self, pod: Pod) -> bool:
        return is_mentioned(self._managed, pod)

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        question = self._questions.about_nodes(pod, nodes)
        read = partial(wire.filter_answer, by_name=self._config.node_cache_capable)
        filtered, refusal = await self._ask(self._config.filter_verb, question, read)
        if refusal:
            raise self._failure(refusal)
        return filtered

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        question = self._questions.about_nodes(pod, nodes)
        return await self._ask(self._config.prioritize_verb, question, wire.priorities_answer, ignored=True)

    async def process_preemption(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> Mapping[str, SparedVictims]:
        question = self._questions.about_victims(pod, victims)
        return await self._ask(self._config.preempt_verb, question, wire.victims_answer)

    async def bind(self, pod: Pod, node_name: str) -> None:
        question = wire.binding_question(pod, node_name)
        refusal = await self._ask(self._config.bind_verb, question, wire.binding_answer, repeatable=False)
        if refusal:
            raise self._failure(refusal)

    async def close(self) -> None:
        """Hang up. It can be asked again, on any event loop."""
        await self._client.close()

    async def _ask(
        self,
        verb: str,
        question: bytes,
        read: Callable[[bytes], Answer],
        *,
        ignored: bool = False,
        repeatable: bool = True,
    ) -> Answer:
        times, began = self.times.setdefault(verb, AnswerTimes()), time.perf_counter()
        try:
            body = await self._client.post(verb, question, repeatable=repeatable)
        except PostError as error:
            times.failures += 1
            raise self._failure(str(error), ignored) from None
        finally:
            times.questions += 1
            times.seconds += time.perf_counter() - began
        try:
            return read(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            text = f'extender "{self.name}" gave an answer to {verb} that cannot be read: {error}'
            raise self._failure(text, ignored) from None

    def _failure(self, message: str, ignored: bool = False) -> ExtenderError:
        """The error to raise; logged if scheduling goes on without an answer, since it shows nowhere else."""
        if self.ignorable or ignored:
            log.warning("going on without extender %s: %s", self.name, message)
        return ExtenderError(message)


def extenders_of(configuration: SchedulerConfiguration, originals: Originals | None = None) -> list[HTTPExtender]:
    """The extenders in the order in which they are asked: ignorable ones come last.

    ExtenderSettingsError if an address, a proxy or a certificate of one cannot be used.
    """
    extenders = [HTTPExtender(config, originals) for config in configuration.extenders]
    return sorted(extenders, key=lambda extender: extender.ignorable)


async def close_all(extenders: Iterable[HTTPExtender]) -> None:
    for extender in extenders:
        await extender.close()

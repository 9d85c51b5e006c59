"""Extenders over HTTP: schedulers outside the process, asked as the configuration says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.configuration import Extender as ExtenderConfig
from kubesched.config.configuration import Profile
from kubesched.extenders import wire as wire
from kubesched.extenders.dialing import without_password
from kubesched.extenders.originals import Originals, is_mentioned, managed_resources
from kubesched.extenders.posting import PostError, Server
from kubesched.framework.extender import (
    Extender,
    ExtenderError,
    ExtenderSettingsError,
    Filtered,
    NodeVictims,
    SparedVictims,
)

DEFAULT_TIMEOUT = 5.0
_FIT = "NodeResourcesFit"
_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class HTTPExtender:
    """One extender of a configuration: an answer is waited for, but no longer than its timeout."""

    def __init__(
        self, config: ExtenderConfig, originals: Originals | None = None, side_by_side: Executor | None = None
    ) -> None:
        """`originals` has objects whole. Scores are asked for in a thread of `side_by_side`, if there is one.

        ValueError if its address, a proxy on the way or its certificates cannot be used.
        """
        self.name = without_password(config.url_prefix)
        self.ignorable = config.ignorable
        self.weight = config.weight
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.preempts = bool(config.preempt_verb)
        self.binds = bool(config.bind_verb)
        self._config = config
        self._managed = managed_resources(config)
        self._questions = wire.Questions(names_only=config.node_cache_capable, originals=originals)
        self._side_by_side = side_by_side
        self._server = Server(
            config.url_prefix,
            timeout=float(config.http_timeout) or DEFAULT_TIMEOUT,
            tls=config.tls_config,
            trust_anybody=config.enable_https,
        )

    def is_interested(self, pod: Pod) -> bool:
        return is_mentioned(self._managed, pod)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        question = self._questions.about_nodes(pod, nodes)
        answer = self._ask(self._config.filter_verb, question, wire.filter_answer)
        if answer.error:
            raise self._failure(answer.error)
        return answer.filtered(by_name=self._config.node_cache_capable)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Callable[[], Mapping[str, int]]:
        if self._side_by_side is None:
            return partial(self._prioritize, pod, nodes)
        return self._side_by_side.submit(self._prioritize, pod, nodes).result

    def _prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        question = self._questions.about_nodes(pod, nodes)
        return self._ask(self._config.prioritize_verb, question, wire.priorities_answer, ignored=True)

    def process_preemption(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> dict[str, SparedVictims]:
        return self._ask(self._config.preempt_verb, self._questions.about_victims(pod, victims), wire.victims_answer)

    def bind(self, pod: Pod, node_name: str) -> None:
        question = wire.binding_question(pod, node_name)
        problem = self._ask(self._config.bind_verb, question, wire.binding_answer, repeatable=False)
        if problem:
            raise self._failure(problem)

    def _ask(
        self,
        verb: str,
        question: bytes,
        read: Callable[[bytes], Answer],
        *,
        ignored: bool = False,
        repeatable: bool = True,
    ) -> Answer:
        try:
            body = self._server.post(verb, question, repeatable=repeatable)
        except PostError as problem:
            raise self._failure(str(problem), ignored) from None
        try:
            return read(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            text = f'extender "{self.name}" gave an answer to {verb} that cannot be read: {problem}'
            raise self._failure(text, ignored) from None

    def _failure(self, message: str, ignored: bool = False) -> ExtenderError:
        """The error to raise. One that nobody will hear of, because scheduling goes on, is logged."""
        if self.ignorable or ignored:
            _log.warning("going on without extender %s: %s", self.name, message)
        return ExtenderError(message)


def extenders_of(configuration: SchedulerConfiguration, originals: Originals | None = None) -> list[Extender]:
    """The extenders in the order in which they are asked: those that may be ignored come last.

    ExtenderSettingsError if an address, a proxy or a certificate of one cannot be used.
    """
    scoring = sum(bool(config.prioritize_verb) for config in configuration.extenders)
    threads = ThreadPoolExecutor(scoring, thread_name_prefix="extender") if scoring > 1 else None
    try:
        made = [HTTPExtender(config, originals, threads) for config in configuration.extenders]
    except ValueError as error:
        raise ExtenderSettingsError(str(error)) from error
    return sorted(made, key=lambda extender: extender.ignorable)


def with_ignored_resources(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration as profiles need it: resources that only extenders account for are none of NodeResourcesFit.

    As in kube-scheduler, they take the place of those that its arguments name, if there are any at all.
    """
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return configuration
    profiles = tuple(_ignoring(profile, ignored) for profile in configuration.profiles)
    return msgspec.structs.replace(configuration, profiles=profiles)


def _ignoring(profile: Profile, resources: tuple[str, ...]) -> Profile:
    args = profile.plugin_config.get(_FIT) or NodeResourcesFitArgs()
    changed = msgspec.structs.replace(args, ignored_resources=resources)
    return msgspec.structs.replace(profile, plugin_config={**profile.plugin_config, _FIT: changed})

"""Extenders: schedulers outside the process that may reject nodes, score them, spare victims and bind pods.

Here is what the engine asks them, and how it merges their answers; the package `extenders` reaches them. Deciding never
waits: a decision that lacks answers ends with AnswersMissingError, and is made again once they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec.structs import replace

from kubesched.api.errors import UserError
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.configuration import ProfileConfig
from kubesched.framework.errors import NotDecidedError
from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.state.columns import Bool

EXTENDER = "Extender"
"""The plugin name that rejections of all extenders bear. Any event may help a pod that they rejected."""

_FIT = "NodeResourcesFit"

Subject = TypeVar("Subject")
Answer = TypeVar("Answer")


class ExtenderSettingsError(UserError):
    """An extender cannot be reached as it is configured."""


class ExtenderError(Exception):
    """An extender could not be asked, or its answer makes no sense."""


class Filtered(NamedTuple):
    """The nodes that an extender lets pass, and why it rejects others. Unresolvable: preemption would not help."""

    passed: frozenset[str]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


class NodeVictims(NamedTuple):
    """The pods that would have to leave a node, and how many disruption budgets that would break."""

    pods: tuple[Pod, ...]
    violations: int


class SparedVictims(NamedTuple):
    """As `NodeVictims`, from an extender: pods by their uid."""

    uids: tuple[str, ...]
    violations: int


class Extender(Protocol):
    """One extender. It is asked only for the verbs that it has; every question may end in an ExtenderError."""

    name: str
    ignorable: bool
    """Whether pods are scheduled without its answer when it fails."""
    weight: int
    filters: bool
    prioritizes: bool
    preempts: bool
    binds: bool
    keeps_accounts: bool
    """Whether it counts what pods take: then it must be asked after earlier pods have their nodes."""

    def is_interested(self, pod: Pod) -> bool:
        """Whether it wants to be asked about this pod at all."""

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Which of the nodes the pod may go to."""

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        """How good nodes are, by name, from 0 to 10; a node without a score gets 0."""

    async def process_preemption(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> Mapping[str, SparedVictims]:
        """The nodes where preemption may go on, and the victims it would take there."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod instead of the Bind plugins."""


class Point(Enum):
    """What an extender is asked about in an attempt, once at most for each."""

    NOMINATED_NODE = "nominated node"
    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPTION = "preemption"


class ExtenderQuestion(Generic[Subject, Answer]):
    """One question to one extender: open until `ask` is over."""

    def __init__(self, verb: Callable[[Pod, Subject], Coroutine[Any, Any, Answer]], pod: Pod, about: Subject) -> None:
        self.about = about
        self.is_open = True
        self._verb = verb
        self._pod = pod
        self._answer: Answer | None = None
        self._failure: ExtenderError | None = None

    async def ask(self) -> None:
        try:
            self._answer = await self._verb(self._pod, self.about)
        except ExtenderError as error:
            self._failure = error
        self.is_open = False

    def fail(self, failure: ExtenderError) -> None:
        """The question ends with an error instead of an answer."""
        self._failure, self.is_open = failure, False

    @property
    def has_answer(self) -> bool:
        return self._answer is not None

    @property
    def answer(self) -> Answer:
        """What the extender said, or the ExtenderError that it ended in; AnswersMissingError if it is still open."""
        if self.is_open:
            raise AnswersMissingError((self,))
        if self._failure is not None:
            raise self._failure
        assert self._answer is not None
        return self._answer


class AnswersMissingError(NotDecidedError):
    """There is no decision before extenders answer these questions; no questions if the pod must wait for its turn."""

    def __init__(self, questions: Sequence[ExtenderQuestion[Any, Any]]) -> None:
        super().__init__("extenders have not answered yet")
        self.questions = questions


class AnswersOutdatedError(NotDecidedError):
    """The cluster changed while extenders answered: the nodes that they let pass do not fit any more."""


class ExtenderAnswers:
    """What extenders were asked in one attempt, and what they answered.

    An attempt is decided on the nodes that the engine offered to extenders, as kube-scheduler decides on its snapshot:
    nodes that came later do not count, and those that fit no longer drop out.
    """

    def __init__(self, interested: Sequence[Extender], node_of: Callable[[str], Node]) -> None:
        """`node_of` looks up a node by its name, for a question that is asked."""
        self.offered: frozenset[str] | None = None
        """The nodes that the search found, and that still fit; None if there was no search yet."""
        self.offered_names: Sequence[str] = ()
        """The same, in the order of their rows."""
        self.evaluated = 0
        """How many nodes the search looked at."""
        self.looks_ahead = False
        """Whether it is not the pod's turn yet: questions may be asked, but nothing is decided."""
        self._is_renewed = False
        self._is_whole = True
        self._lost = frozenset[str]()
        self._interested = interested
        self._node_of = node_of
        self._questions: dict[tuple[Point, int], ExtenderQuestion[Any, Any]] = {}

    @property
    def may_look_ahead(self) -> bool:
        return not any(extender.keeps_accounts for extender in self._interested)

    def wait_for_turn(self) -> None:
        """AnswersMissingError if it is not the pod's turn yet: to be called before anything is drawn or changed."""
        if self.looks_ahead:
            raise AnswersMissingError(())

    def offered_rows(self, feasible: Bool, names: Sequence[str]) -> list[int] | None:
        """The rows of offered nodes that still fit; None if there was no search yet."""
        if self.offered is None:
            return None
        return [row for row in np.flatnonzero(feasible).tolist() if names[row] in self.offered]

    def offer(self, names: Sequence[str], evaluated: int, *, is_whole: bool) -> None:
        """The nodes that a search found, or that still fit of those. `is_whole`: no other node fits."""
        self.offered_names = names
        if self.offered is None:
            self.evaluated, self._is_whole, self.offered = evaluated, is_whole, frozenset(names)
        elif len(names) < len(self.offered):
            self._lost |= self.offered.difference(names)
            self.offered = frozenset(names)

    def found_none(self, *, others_fit: bool) -> None:
        """Extenders and filters leave no node. AnswersOutdatedError if only because the cluster changed meanwhile."""
        if self._lost - self._rejected_names() or (others_fit and self._is_whole):
            self.give_up()

    def give_up(self) -> None:
        """AnswersOutdatedError, so that all questions are asked anew; but only once in an attempt."""
        if not self._is_renewed:
            raise AnswersOutdatedError

    def renew(self) -> None:
        self.offered, self._is_renewed = None, True
        self._lost = frozenset()
        self._questions.clear()

    def _rejected_names(self) -> set[str]:
        rejected = set[str]()
        for (point, _), question in self._questions.items():
            if point is Point.FILTER and question.has_answer:
                rejected |= {node.name for node in question.about} - question.answer.passed
        return rejected

    # -- filter -------------------------------------------------------------------------------------------------------

    def rejections(self, point: Point, pod: Pod, names: Sequence[str]) -> dict[str, Status]:
        """The nodes that extenders reject, and why. Each is asked about the nodes that earlier ones let pass."""
        standing, rejected = names, dict[str, Status]()
        for extender in self._interested:
            if not standing:
                break
            if not extender.filters:
                continue
            try:
                answer = self._question(point, extender, partial(_filter, extender), pod, standing).answer
            except ExtenderError:
                if extender.ignorable:
                    continue
                raise
            left_out = [name for name in standing if name not in answer.passed]
            if left_out:
                rejected |= {name: _rejection(extender, answer, name) for name in left_out}
                standing = [name for name in standing if name in answer.passed]
        return rejected

    # -- prioritize ---------------------------------------------------------------------------------------------------

    def scores(self, pod: Pod, names: Sequence[str]) -> list[tuple[Extender, list[int]]]:
        """The scores of each extender that prioritizes, a number per node, in order. One that failed has none."""
        questions = [
            (extender, self._question(Point.PRIORITIZE, extender, extender.prioritize, pod, names))
            for extender in self._interested
            if extender.prioritizes
        ]
        missing = [question for _, question in questions if question.is_open]
        if missing:
            raise AnswersMissingError(missing)
        scores = []
        for extender, question in questions:
            try:
                answer = question.answer
            except ExtenderError:
                continue  # without its scores; kube-scheduler ignores such failures of all extenders
            scores.append((extender, [answer.get(name, 0) for name in names]))
        return scores

    # -- preemption ---------------------------------------------------------------------------------------------------

    def preempting(self) -> list[Extender]:
        return [extender for extender in self._interested if extender.preempts]

    def about_victims(
        self, extender: Extender, pod: Pod, victims: Mapping[str, NodeVictims]
    ) -> ExtenderQuestion[Mapping[str, NodeVictims], Mapping[str, SparedVictims]]:
        """The question about victims; the earlier one if it was asked already, perhaps about other victims."""
        key = (Point.PREEMPTION, self._interested.index(extender))
        return self._questions.setdefault(key, ExtenderQuestion(extender.process_preemption, pod, victims))

    def _question(
        self,
        point: Point,
        extender: Extender,
        verb: Callable[[Pod, Sequence[Node]], Coroutine[Any, Any, Answer]],
        pod: Pod,
        names: Sequence[str],
    ) -> ExtenderQuestion[Sequence[Node], Answer]:
        key = (point, self._interested.index(extender))
        if key not in self._questions:
            self._questions[key] = ExtenderQuestion(verb, pod, [self._node_of(name) for name in names])
        return self._questions[key]


async def _filter(extender: Extender, pod: Pod, nodes: Sequence[Node]) -> Filtered:
    answer = await extender.filter(pod, nodes)
    unknown = answer.passed - {node.name for node in nodes}
    if unknown:
        raise ExtenderError(
            f'extender "{extender.name}" claims a filtered node "{min(unknown)}" '
            "which is not found in the input node list"
        )
    return answer


def _rejection(extender: Extender, answer: Filtered, name: str) -> Status:
    if name in answer.unresolvable:
        status = unresolvable(answer.unresolvable[name])
    elif name in answer.failed:
        status = unschedulable(answer.failed[name])
    else:
        # kube-scheduler takes a node that is left out without a reason for unresolvable.
        status = unresolvable(f'node(s) were left out by extender "{extender.name}"')
    return status.by(EXTENDER)


async def ask_to_bind(extenders: Iterable[Extender], pod: Pod, node_name: str) -> bool:
    """Whether an extender bound the pod. ExtenderError if one that binds failed."""
    for extender in extenders:
        if not extender.binds or not extender.is_interested(pod):
            continue
        try:
            await extender.bind(pod, node_name)
        except ExtenderError:
            if extender.ignorable:
                continue
            raise
        return True
    return False


def ignoring_managed_resources(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration in which NodeResourcesFit ignores resources that only extenders account for.

    As in kube-scheduler, these replace the ignored resources of the plugin's arguments, if there are any at all.
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
    return replace(configuration, profiles=profiles)


def _ignoring(profile: ProfileConfig, resources: tuple[str, ...]) -> ProfileConfig:
    args = profile.plugin_config.get(_FIT) or NodeResourcesFitArgs()
    changed = replace(args, ignored_resources=resources)
    return replace(profile, plugin_config={**profile.plugin_config, _FIT: changed})

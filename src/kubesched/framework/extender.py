"""Extenders: schedulers outside the process that may reject nodes, score them, spare victims and bind pods.

Here is what one can be asked, and how answers of several are put together. How they are reached is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from kubesched.api.errors import UserError
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.status import MAX_NODE_SCORE, Status, unresolvable, unschedulable

EXTENDER = "Extender"
"""Whom to blame for the rejections of all extenders. Any event may help a pod that they rejected."""

MAX_EXTENDER_SCORE = 10
SCALE = MAX_NODE_SCORE // MAX_EXTENDER_SCORE


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
    """The same as an extender answers: pods by their uid."""

    uids: tuple[str, ...]
    violations: int


class Extender(Protocol):
    """One extender. Only what it says it does is asked of it; every question may end in an ExtenderError."""

    name: str
    ignorable: bool
    """Whether pods are scheduled without its word when it fails."""
    weight: int
    filters: bool
    prioritizes: bool
    preempts: bool
    binds: bool

    def is_interested(self, pod: Pod) -> bool:
        """Whether it wants to be asked about this pod at all."""

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Which of the nodes the pod may go to."""

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Callable[[], Mapping[str, int]]:
        """How good nodes are, by name, from 0 to 10; those left out get nothing.

        The call may merely begin to ask, for others to be asked meanwhile. What it returns waits for the answer.
        """

    def process_preemption(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> Mapping[str, SparedVictims]:
        """The nodes where preemption may go on, and the victims it would take there."""

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod in the scheduler's stead."""


def ask_to_filter(extenders: Iterable[Extender], pod: Pod, nodes: Sequence[Node]) -> dict[str, Status]:
    """The nodes that extenders reject, and why. Each is asked about those that the ones before it let pass."""
    standing, rejected = nodes, dict[str, Status]()
    for extender in extenders:
        if not standing:
            break
        if not extender.filters or not extender.is_interested(pod):
            continue
        try:
            answer = extender.filter(pod, standing)
            _check_known(extender, answer, standing)
        except ExtenderError:
            if extender.ignorable:
                continue
            raise
        for node in standing:
            if node.name not in answer.passed:
                rejected[node.name] = _why(extender, answer, node.name)
        standing = [node for node in standing if node.name in answer.passed]
    return rejected


def _check_known(extender: Extender, answer: Filtered, asked: Sequence[Node]) -> None:
    unknown = answer.passed - {node.name for node in asked}
    if unknown:
        raise ExtenderError(
            f'extender "{extender.name}" claims a filtered node "{min(unknown)}" '
            "which is not found in the input node list"
        )


def _why(extender: Extender, answer: Filtered, name: str) -> Status:
    if name in answer.unresolvable:
        status = unresolvable(answer.unresolvable[name])
    elif name in answer.failed:
        status = unschedulable(answer.failed[name])
    else:
        # Left out without a word, which kube-scheduler takes for unresolvable.
        status = unresolvable(f'node(s) were left out by extender "{extender.name}"')
    return status.by(EXTENDER)


def ask_to_prioritize(
    extenders: Iterable[Extender], pod: Pod, nodes: Sequence[Node]
) -> Iterator[tuple[Extender, list[int]]]:
    """The scores of each extender that has any, a number per node, in their order. One that fails just has none."""
    asked = [extender for extender in extenders if extender.prioritizes and extender.is_interested(pod)]
    answers = [extender.prioritize(pod, nodes) for extender in asked]
    for extender, answer in zip(asked, answers, strict=True):
        try:
            scores = answer()
        except ExtenderError:
            continue  # a preference nobody could state is none; kube-scheduler ignores this of all extenders
        yield extender, [scores.get(node.name, 0) for node in nodes]


def ask_to_bind(extenders: Iterable[Extender], pod: Pod, node_name: str) -> bool:
    """Whether an extender bound the pod. ExtenderError if one should have and could not."""
    for extender in extenders:
        if not extender.binds or not extender.is_interested(pod):
            continue
        try:
            extender.bind(pod, node_name)
        except ExtenderError:
            if extender.ignorable:
                continue
            raise
        return True
    return False

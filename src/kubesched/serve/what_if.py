"""What if nodes were drained, lost or added, or workloads scaled or changed? Simulated in a thread, one at a time.

Unlike the other questions this takes seconds in a large cluster: the objects are gathered on the event loop, where
nothing else changes them, and the rest is done on a copy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.workloads import Namespace
from kubesched.questions.answers import Skipped, answer
from kubesched.questions.given import AskedError, Given
from kubesched.questions.output import plain
from kubesched.questions.targets import parsed, unknown_of_kind
from kubesched.questions.what_if.change import Change, ChangeError, Objects, applied
from kubesched.questions.what_if.node_changes import AddNodes, Anew, Drain, Lose
from kubesched.questions.what_if.outcome import Outcome, outcome
from kubesched.questions.what_if.reading import MOST_ADDED
from kubesched.questions.what_if.what_if import what_if
from kubesched.questions.what_if.workload_changes import SCALABLE, Apply, Scale
from kubesched.scheduler.run_now import StillWaitingError
from kubesched.serve.age import Followed, NotReadyError
from kubesched.serve.questions import Asking, QuestionTimeoutError
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.draining import nodes_meant, whats_wrong
from kubesched.simulate.kinds import DEFAULT_NAMESPACE, Workload
from kubesched.simulate.manifests import bare_namespace

TIMEOUT = 60.0
MOST = 4
"""How many may be under way: one is answered, the others wait for their turn."""
MOST_NEW_PODS = 100_000
_MOST_NAMED = 3

Nodes = Annotated[tuple[str, ...], msgspec.Meta(description="Nodes by name, or by a label `key=value`.")]


class BusyError(UserError):
    """Too many questions of this kind are under way."""


class AddedNodes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """New nodes like one that is there, by its name or `key=value`, or like a manifest."""

    like: str | dict[str, Any]
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_ADDED)] = 1


class ScaledWorkload(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Another number of replicas of `[namespace/]type/name`: a deployment, replicaset or statefulset."""

    workload: str
    replicas: Annotated[int, msgspec.Meta(ge=0, le=MOST_NEW_PODS)]


class WhatIfQuestion(Asking, frozen=True, kw_only=True, rename={"objects": "with"}):
    """What would be different with these changes: who moves, who waits and why, who is evicted?"""

    objects: tuple[dict[str, Any], ...] = ()
    scale: tuple[ScaledWorkload, ...] = ()
    add: tuple[AddedNodes, ...] = ()
    lose: Nodes = ()
    drain: Nodes = ()
    anew: bool = False


class WhatIfs:
    """Answers such questions about one cluster."""

    def __init__(
        self,
        cluster: ClusterModel,
        followed: Followed,
        *,
        timeout: float = TIMEOUT,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`timeout` is in seconds, for each question from when it is asked."""
        self._cluster = cluster
        self._followed = followed
        self._given = Given(cluster)
        self._timeout = timeout
        self._most = most
        self._clock = clock
        self._under_way = 0
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="what-if")
        self._is_closed = False
        self._before: dict[bool, Outcome] = {}
        """Of files, which stay as they are: the outcome without changes, as they are and with all pods placed anew."""

    def close(self) -> None:
        """No more answers: one that is being looked for is given up."""
        self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _check_open(self) -> None:
        if self._is_closed:
            raise NotReadyError("the service is about to end")

    async def ask(self, question: WhatIfQuestion) -> dict[str, Any]:
        """The answer as a document. NotReadyError, AskedError, BusyError, QuestionTimeoutError, PluginError."""
        if self._under_way >= self._most:
            raise BusyError(f"{self._under_way} what-if questions are under way, which is all there may be")
        deadline = self._clock() + self._timeout
        self._under_way += 1
        try:
            async with self._turn:
                self._check_open()
                age = self._followed.age()
                changes = _Changes(question, self._given)
                objects = tuple(self._cluster.objects())
                kept = self._before if age.source == "files" else {}
                work = asyncio.get_running_loop().run_in_executor(
                    self._thread, self._answer, objects, changes, kept, deadline
                )
                return {**await work, "cluster": plain(age)}
        finally:
            self._under_way -= 1

    def _answer(
        self, objects: Objects, changes: _Changes, kept: dict[bool, Outcome], deadline: float
    ) -> dict[str, Any]:
        def in_time(*_: int) -> None:
            self._check_open()
            if self._clock() > deadline:
                raise QuestionTimeoutError(f"took longer than {self._timeout:g} s")

        in_time()
        anew = changes.anew
        objects = applied(objects, [Anew()] if anew else [])
        checked = changes.checked(objects)
        settings = self._cluster.configuration
        try:
            if anew not in kept:
                kept[anew] = outcome(objects, settings, progress=in_time)
            found = what_if(objects, settings, checked, before=kept[anew], progress=in_time)
        except StillWaitingError as error:
            raise UserError(str(error)) from error
        return answer(found, Skipped({}))


class _Changes:
    """The changes that a question asks for, in the order of the command: what comes before what goes."""

    def __init__(self, question: WhatIfQuestion, given: Given) -> None:
        """Manifests are read at once, with the classes that there are now. Raises AskedError."""
        self.anew = question.anew
        self._question = question
        self._lines: list[str] = []
        self._new = [
            obj
            for i, value in enumerate(question.objects)
            if (obj := self._read(given, value, f"with[{i}]")) is not None
        ]
        self._models = [self._model(given, each.like, f"add[{i}].like") for i, each in enumerate(question.add)]
        if not (question.objects or question.scale or question.add or question.lose or question.drain):
            self._lines.append("body: nothing is changed: give with, scale, add, lose or drain")
        self._check_size()
        if self._lines:
            raise AskedError(*self._lines)

    def checked(self, objects: Objects) -> list[Change]:
        """The changes, if each is possible after those before it. AskedError with all that is wrong."""
        question, found = self._question, list[Change]()

        def change(change: Change, path: str) -> None:
            nonlocal objects
            try:
                objects = change.apply(objects)
                found.append(change)
            except ChangeError as error:
                self._lines += [f"{path}: {line}" for line in error.lines]

        if self._new:
            change(self._with(objects), "with")
        for i, each in enumerate(question.scale):
            scale = self._scale(each, objects, f"scale[{i}].workload")
            if scale is not None:
                change(scale, f"scale[{i}]")
        for i, (added, model) in enumerate(zip(question.add, self._models)):
            if isinstance(model, Node) or self._means_some(objects, model, f"add[{i}].like"):
                change(AddNodes(added.count, model), f"add[{i}]")
        for kind, path, texts in ((Lose, "lose", question.lose), (Drain, "drain", question.drain)):
            known = [self._means_some(objects, text, f"{path}[{i}]") for i, text in enumerate(texts)]
            if known and all(known):
                change(kind(texts), path)
        if self._lines:
            raise AskedError(*self._lines)
        return found

    # -- each of them -------------------------------------------------------------------------------------------------

    def _check_size(self) -> None:
        """What is made before the first pod is tried is not stopped by any limit of time."""
        nodes = sum(each.count for each in self._question.add)
        if nodes > MOST_ADDED:
            self._lines.append(f"add: expected at most {MOST_ADDED:,} new nodes in all, got {nodes:,}")
        specs = [obj.spec for obj in self._new if isinstance(obj, Workload)]
        pods = sum(each.replicas for each in self._question.scale)
        pods += sum(max(spec.replicas or 0, spec.parallelism or 0, spec.completions or 0) for spec in specs)
        if pods > MOST_NEW_PODS:
            self._lines.append(f"body: expected workloads of at most {MOST_NEW_PODS:,} pods in all, got {pods:,}")

    def _read(self, given: Given, value: dict[str, Any], path: str) -> KubeObject | None:
        try:
            return given.object(value, path, workloads=True)
        except AskedError as error:
            self._lines += error.lines
            return None

    def _model(self, given: Given, like: str | dict[str, Any], path: str) -> str | Node:
        if isinstance(like, str):
            return like
        node = self._read(given, {"apiVersion": "v1", "kind": "Node", **like}, path)
        if node is not None and not isinstance(node, Node):
            self._lines.append(f"{path}.kind: expected a Node")
        return node if isinstance(node, Node) else ""

    def _with(self, objects: Iterable[KubeObject]) -> Apply:
        """The new objects, with the namespaces that they need."""
        there = {obj.name for obj in (*objects, *self._new) if isinstance(obj, Namespace)}
        needed = dict.fromkeys(obj.namespace for obj in self._new if obj.namespace and obj.namespace not in there)
        names = [f"{type(obj).__name__} {obj.key}" for obj in self._new]
        said = ", ".join(names) if len(names) <= _MOST_NAMED else f"{len(names)} objects"
        return Apply((*self._new, *map(bare_namespace, needed)), said)

    def _scale(self, scaled: ScaledWorkload, objects: Objects, path: str) -> Scale | None:
        kind, key = parsed(scaled.workload, DEFAULT_NAMESPACE)
        scalable = next((each for each in SCALABLE if each is kind), None)
        if scalable is None:
            self._lines.append(f"{path}: expected [namespace/]type/name of a deployment, replicaset or statefulset")
            return None
        there = [obj.key for obj in objects if isinstance(obj, scalable)]
        if key not in there:
            self._lines.append(f"{path}: {unknown_of_kind(scalable, key, there)}")
            return None
        namespace, _, name = key.partition("/")
        return Scale(scalable, name, scaled.replicas, namespace)

    def _means_some(self, objects: Objects, text: str, path: str) -> bool:
        if nodes_meant(objects, text):
            return True
        self._lines.append(f"{path}: {whats_wrong(objects, text)}")
        return False

"""Extenders over HTTP: questions and answers in the words of k8s.io/kube-scheduler/extender/v1."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Container, Pod
from kubesched.config import SchedulerConfiguration
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.configuration import Profile
from kubesched.config.extender import Extender as ExtenderConfig
from kubesched.framework.extender import Extender, ExtenderError, Filtered, NodeVictims, SparedVictims
from kubesched.scheduler.posting import PostError, Server

DEFAULT_TIMEOUT = 5.0
_FIT = "NodeResourcesFit"
_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


# Keys of answers are in lower case here: Go does not mind case, and extenders in other languages rely on that.


class _Meta(msgspec.Struct):
    name: str


class _Item(msgspec.Struct):
    metadata: _Meta


class _NodeList(msgspec.Struct):
    items: list[_Item] | None = None


class _FilterResult(msgspec.Struct):
    nodes: _NodeList | None = None
    nodenames: list[str] | None = None
    failednodes: dict[str, str] | None = None
    failedandunresolvablenodes: dict[str, str] | None = None
    error: str | None = None


class _HostPriority(msgspec.Struct):
    host: str = ""
    score: int = 0


class _MetaPod(msgspec.Struct):
    uid: str = ""


class _MetaVictims(msgspec.Struct):
    pods: list[_MetaPod] | None = None
    numpdbviolations: int = 0


class _PreemptionResult(msgspec.Struct):
    nodenametometavictims: dict[str, _MetaVictims | None] | None = None


class _BindingResult(msgspec.Struct):
    error: str | None = None


class HTTPExtender:
    """One extender of a configuration, asked in turn: an answer is waited for, but no longer than its timeout."""

    def __init__(self, config: ExtenderConfig) -> None:
        """Raises ValueError if its address or its certificates cannot be used."""
        self.name = config.url_prefix
        self.ignorable = config.ignorable
        self.weight = config.weight
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.preempts = bool(config.preempt_verb)
        self.binds = bool(config.bind_verb)
        self._config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._server = Server(
            config.url_prefix,
            timeout=float(config.http_timeout) or DEFAULT_TIMEOUT,
            tls=config.tls_config,
            trust_anybody=config.enable_https,
        )

    def is_interested(self, pod: Pod) -> bool:
        if not self._managed:
            return True
        return any(_mentions(c, self._managed) for c in (*pod.spec.containers, *pod.spec.init_containers))

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        result = self._ask(self._config.filter_verb, self._args(pod, nodes), _FilterResult)
        if result.error:
            raise self._failure(result.error)
        if self._config.node_cache_capable and result.nodenames is not None:
            passed = frozenset(result.nodenames)
        else:
            items = (result.nodes.items or ()) if result.nodes is not None else ()
            passed = frozenset(item.metadata.name for item in items)
        return Filtered(passed, result.failednodes or {}, result.failedandunresolvablenodes or {})

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        args = self._args(pod, nodes)
        scores: dict[str, int] = {}
        for host in self._ask(self._config.prioritize_verb, args, list[_HostPriority], ignored=True):
            scores[host.host] = scores.get(host.host, 0) + host.score
        return scores

    def process_preemption(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> dict[str, SparedVictims]:
        capable = self._config.node_cache_capable
        args = {
            "Pod": _wire_pod(pod),
            "NodeNameToVictims": None if capable else {n: _wire_victims(v, _wire_pod) for n, v in victims.items()},
            "NodeNameToMetaVictims": {n: _wire_victims(v, _wire_uid) for n, v in victims.items()} if capable else None,
        }
        result = self._ask(self._config.preempt_verb, args, _PreemptionResult)
        return {
            name: SparedVictims(tuple(pod.uid for pod in spared.pods or ()), spared.numpdbviolations)
            if spared is not None
            else SparedVictims((), 0)
            for name, spared in (result.nodenametometavictims or {}).items()
        }

    def bind(self, pod: Pod, node_name: str) -> None:
        args = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
        result = self._ask(self._config.bind_verb, args, _BindingResult)
        if result.error:
            raise self._failure(result.error)

    def _args(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, Any]:
        if self._config.node_cache_capable:
            return {"Pod": _wire_pod(pod), "Nodes": None, "NodeNames": [node.name for node in nodes]}
        items = [_with_kind(node, "Node") for node in nodes]
        node_list = {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items}
        return {"Pod": _wire_pod(pod), "Nodes": node_list, "NodeNames": None}

    def _ask(self, verb: str, args: object, answer: type[Answer], *, ignored: bool = False) -> Answer:
        try:
            body = self._server.post(verb, msgspec.json.encode(args))
        except PostError as problem:
            raise self._failure(str(problem), ignored) from None
        try:
            plain = msgspec.json.decode(body)
            return answer() if plain is None else msgspec.convert(_with_lower_keys(plain), answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            text = f'extender "{self.name}" gave an answer to {verb} that cannot be read: {problem}'
            raise self._failure(text, ignored) from None

    def _failure(self, message: str, ignored: bool = False) -> ExtenderError:
        """The error to raise. One that nobody will hear of, because scheduling goes on, is logged."""
        if self.ignorable or ignored:
            _log.warning("going on without extender %s: %s", self.name, message)
        return ExtenderError(message)


def extenders_of(configuration: SchedulerConfiguration) -> list[Extender]:
    """The extenders in the order in which they are asked: those that may be ignored come last."""
    made = [HTTPExtender(config) for config in configuration.extenders]
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


def _mentions(container: Container, resources: frozenset[str]) -> bool:
    return not resources.isdisjoint(container.resources.requests) or not resources.isdisjoint(
        container.resources.limits
    )


# -- what is sent -----------------------------------------------------------------------------------------------------

_Object = TypeVar("_Object", bound=KubeObject)


def _with_kind(obj: _Object, kind: str) -> _Object:
    return msgspec.structs.replace(obj, api_version="v1", kind=kind)


def _wire_pod(pod: Pod) -> dict[str, Any]:
    wire: dict[str, Any] = msgspec.to_builtins(_with_kind(pod, "Pod"))
    # Records leave out what is as by default, but on the wire this has no default.
    wire.setdefault("spec", {})["schedulerName"] = pod.spec.scheduler_name
    return wire


def _wire_uid(pod: Pod) -> dict[str, str]:
    return {"UID": pod.uid}


def _wire_victims(victims: NodeVictims, wire: Callable[[Pod], object]) -> dict[str, Any]:
    return {"Pods": [wire(pod) for pod in victims.pods], "NumPDBViolations": victims.violations}


_KEYED_BY_NODE = frozenset({"failednodes", "failedandunresolvablenodes", "nodenametometavictims"})


def _with_lower_keys(value: Any, *, keep: bool = False) -> Any:
    """The same with field names in lower case; names of nodes and whole nodes stay as they are."""
    if isinstance(value, list):
        return [_with_lower_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key if keep else key.lower(): inner
        if key.lower() == "items" and not keep
        else _with_lower_keys(inner, keep=not keep and key.lower() in _KEYED_BY_NODE)
        for key, inner in value.items()
    }

"""Asks what the scheduler would do with a pod: one that is there, one more like it, or one that somebody is editing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodStatus
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import PriorityClass
from kubesched.api.yaml import YamlError, documents, dump
from kubesched.framework.decision import Decision
from kubesched.simulate.admission import Admission, Classes
from kubesched.simulate.kinds import ReadAs, kind_of
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.verdict import Verdict, verdict_of

replace = msgspec.structs.replace

_MOST_BY_ALIASES = 1 << 18
_LEFT_OUT = ("nodeName", "volumes")
"""Not for editing: where a pod is, and volumes, whose claims belong to it."""


class TryError(UserError):
    """What is wrong with a pod that somebody is editing."""


def one_more(pod: Pod) -> Pod:
    """A pod like this one that has no node yet. One that has none is asked about itself."""
    if not pod.spec.node_name and not pod.is_finished:
        return pod
    name = f"{pod.name}-one-more"
    metadata = replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}", deletion_timestamp="")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


class Asking:
    """Questions about single pods. Nothing is changed by asking."""

    def __init__(self, observed: ObservedCluster) -> None:
        self._observed = observed

    def decide(self, pod: Pod, *, explain: bool = False) -> Decision | None:
        """The decision as it would be now; None if the pod waits for a scheduler that is not this one."""
        engine = self._observed.engine
        return engine.decide(pod, explain=explain) if engine.knows(pod.spec.scheduler_name) else None

    def verdict(self, pod: Pod) -> Verdict | None:
        """The same in full."""
        decision = self.decide(pod, explain=True)
        if decision is None:
            return None
        gate = self._observed.engine.pre_enqueue(pod)
        return verdict_of(decision, self._observed.state, self._observed.profiles, gate)

    def edited(self, text: str, original: Pod | None = None) -> Pod:
        """The pod of a manifest, as an API server would complete it. TryError with all that is wrong with it.

        It takes the place of the original, if there is one: with its name, and with the claims that were made for it.
        """
        obj = _one_document(text)
        metadata = {**(obj.get("metadata") or {})}
        metadata.setdefault("namespace", original.namespace if original else "default")
        metadata.setdefault("name", original.name if original else "new-pod")
        read_as = kind_of(obj.get("apiVersion", "v1"), obj.get("kind", "Pod"))
        if not isinstance(read_as, ReadAs) or read_as.record is not Pod:
            raise TryError("kind: expected a Pod of v1")
        obj = {**obj, "apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        made, mistakes = Admission(Classes(self._classes())).admit(read_as, obj)
        if not isinstance(made, Pod):
            raise TryError(*(str(mistake) for mistake in mistakes))
        if not self._observed.engine.knows(made.spec.scheduler_name):
            known = ", ".join(self._observed.profiles)
            raise TryError(f"spec.schedulerName: {made.spec.scheduler_name!r}; there are profiles for {known}")
        if original is None:
            return one_more(made)
        spec = replace(made.spec, node_name="", volumes=original.spec.volumes)
        labels = made.metadata.labels
        return one_more(replace(original, metadata=replace(original.metadata, labels=labels), spec=spec))

    def _classes(self) -> Iterable[KubeObject]:
        objects = self._observed.state.objects
        return (*objects.all(PriorityClass), *objects.all(StorageClass))


def manifest_of(pod: Pod) -> Object:
    """What can be edited of a pod, as a manifest."""
    plain: dict[str, Any] = msgspec.to_builtins(pod)
    spec = {key: value for key, value in plain.get("spec", {}).items() if key not in _LEFT_OUT}
    metadata = {"name": pod.name, "namespace": pod.namespace, "labels": dict(pod.metadata.labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def yaml_of(manifest: Object) -> str:
    return dump(manifest)


def _one_document(text: str) -> Object:
    try:
        found = [document.value for document in documents(text, most_by_aliases=_MOST_BY_ALIASES) if document.value]
    except (YamlError, RecursionError) as error:
        raise TryError(str(error)) from error
    if len(found) != 1 or not isinstance(found[0], dict):
        raise TryError("expected one Pod")
    if not isinstance(found[0].get("metadata") or {}, dict):
        raise TryError("metadata: expected a mapping")
    return found[0]

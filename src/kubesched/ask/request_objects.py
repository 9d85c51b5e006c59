"""Objects that a question brings along, completed and checked as an API server would, and pods that it names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.api.errors import UserError
from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodStatus
from kubesched.api.schema import Mistake
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import PriorityClass
from kubesched.ask.targets import UnknownTargetError, find_pod
from kubesched.ask.trial import Trial
from kubesched.simulate.admission import Admission, Classes
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import DEFAULT_NAMESPACE, ReadAs, kind_of

_MOST_KEPT = 1024


class QuestionRequest(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is sent to ask."""


class RequestError(UserError):
    """What is wrong with a question: a line per field, each beginning with its path."""


class RequestObjects:
    """Reads what comes with questions to one cluster. Pods are kept, as programs ask about the same again and again."""

    def __init__(self, cluster: ClusterModel) -> None:
        self.cluster = cluster
        self._versions: tuple[int, int] | None = None
        self._admission = Admission(Classes())
        self._pods: OrderedDict[tuple[bytes, str], Pod] = OrderedDict()

    def pod(self, raw: msgspec.Raw, path: str, trial: Trial) -> Pod:
        """A new pod from its manifest, or the one of the cluster that a text means. Raises RequestError."""
        self._follow_classes()
        key = (bytes(raw), path)
        if key in self._pods:
            self._pods.move_to_end(key)
            return self._pods[key]
        try:
            value = msgspec.json.decode(raw)
        except msgspec.DecodeError as error:  # such as text that is not UTF-8
            raise RequestError(f"{path}: {error}") from None
        if isinstance(value, str):
            return self._known(value, path, trial)
        pod = self._new(value, path)
        self._pods[key] = pod
        if len(self._pods) > _MOST_KEPT:
            self._pods.popitem(last=False)
        return pod

    def pods(self, raws: Iterable[msgspec.Raw], path: str, trial: Trial) -> list[Pod]:
        """Several pods, none of them twice. RequestError with the mistakes of all of them."""
        found: dict[str, Pod] = {}
        lines: list[str] = []
        for i, raw in enumerate(raws):
            try:
                pod = self.pod(raw, f"{path}[{i}]", trial)
            except RequestError as error:
                lines += error.lines
                continue
            if pod.identity in found:
                lines.append(f"{path}[{i}]: the pod {pod.key} is named twice")
            found[pod.identity] = pod
        if lines:
            raise RequestError(*lines)
        return list(found.values())

    def object(self, value: Mapping[str, Any], path: str, *, workloads: bool = False) -> KubeObject:
        """A new object of any kind that scheduling looks at, or that makes pods. Raises RequestError."""
        self._follow_classes()
        read_as = kind_of(value.get("apiVersion"), value.get("kind"), workloads=workloads)
        if read_as is None:
            raise RequestError(f"{path}.kind: scheduling does not look at objects of {value['kind']!r}")
        if isinstance(read_as, Mistake):
            raise RequestError(_at(path, read_as))
        metadata = value.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise RequestError(f"{path}.metadata: expected an object")
        if read_as.resource.namespaced:
            metadata = {"namespace": DEFAULT_NAMESPACE, **metadata}
        record, mistakes = self._admission.admit(read_as, {**value, "metadata": metadata})
        if record is None:
            raise RequestError(*(_at(path, mistake) for mistake in mistakes))
        return record

    def _known(self, text: str, path: str, trial: Trial) -> Pod:
        try:
            found = find_pod(self.cluster, text, trial=trial)
        except UnknownTargetError as error:
            raise RequestError(*(f"{path}: {line}" for line in error.lines)) from None
        self._check_profile(found, path)
        return found

    def _new(self, value: Any, path: str) -> Pod:
        """A pod that has no node yet. Its uid is its own, so it may be the manifest of one that is there."""
        if not isinstance(value, dict):
            raise RequestError(f"{path}: expected the manifest of a pod, or the namespace/name of one that is there")
        manifest: Object = {"apiVersion": "v1", "kind": "Pod", **value}
        read_as = kind_of(manifest["apiVersion"], manifest["kind"])
        if not isinstance(read_as, ReadAs) or read_as.record is not Pod:
            raise RequestError(f"{path}.kind: expected a Pod of v1")
        metadata = manifest.get("metadata")
        if metadata is None or isinstance(metadata, dict):
            named = dict(metadata or {})
            named["name"] = named.get("name") or f"{named.get('generateName') or 'pod-'}asked"
            manifest["metadata"] = named
        made = self.object(manifest, path)
        assert isinstance(made, Pod)
        self._check_profile(made, path)
        metadata = replace(made.metadata, uid=f"asked/{path}", deletion_timestamp="")
        return replace(made, metadata=metadata, spec=replace(made.spec, node_name=""), status=PodStatus())

    def _check_profile(self, pod: Pod, path: str) -> None:
        if not self.cluster.engine.knows(pod.spec.scheduler_name):
            known = ", ".join(self.cluster.profiles)
            raise RequestError(
                f"{path}.spec.schedulerName: {pod.spec.scheduler_name!r}; there are profiles for {known}"
            )

    def _follow_classes(self) -> None:
        """Priorities and storage classes are filled in from the classes that there are now."""
        objects = self.cluster.state.objects
        versions = objects.version(PriorityClass), objects.version(StorageClass)
        if versions != self._versions:
            self._versions = versions
            self._admission = Admission(Classes([*objects.all(PriorityClass), *objects.all(StorageClass)]))
            self._pods.clear()


def _at(path: str, mistake: Mistake) -> str:
    return f"{path}.{mistake}" if mistake.path else f"{path}: {mistake}"

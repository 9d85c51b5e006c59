"""The usage of hollow pods, which run no containers: half of what they request, or what an annotation says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubesched.api.kinds import BUILT_IN, PODS, Object, Resource
from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched_sandbox.api.catalog import NODE_METRICS
from kubesched_sandbox.api.reading import Reading

USAGE = "kubesched.io/usage"
"""On a pod: what it uses, as `cpu=250m,memory=1Gi`; a percentage is one of its requests.

On a workload: what all its running pods use together; each has an equal share.
"""

_LONGEST_CHAIN = 4
_WINDOW = "15s"

Amounts = Mapping[str, int]
"""cpu in thousandths, memory in bytes."""


class _Said(NamedTuple):
    """One amount of an annotation."""

    amount: int
    is_share: bool = False
    """Whether it is a percentage of what is requested."""


_USUAL = _Said(50, is_share=True)
"""Less than the targets of most HorizontalPodAutoscalers, so that these come to rest."""


def is_running(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def amount_of(name: str, text: str | int) -> int:
    quantity = parse_quantity(text)
    return quantity.milli() if name == "cpu" else quantity.value()


def requests_of(container: Object) -> Amounts:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: amount_of(name, requests[name]) for name in ("cpu", "memory") if name in requests}


class Usage:
    """The usage of running pods, at one moment."""

    def __init__(self, api: Reading, namespace: str | None = None) -> None:
        self._api = api
        self._owners: dict[str, Object | None] = {}
        self.pods = [pod for pod in api.select(PODS, namespace) if is_running(pod)]
        self._sharing = Counter(owner["metadata"]["uid"] for pod in self.pods if (owner := self._loaded_owner(pod)))

    def of(self, pod: Object) -> dict[str, dict[str, int]]:
        """By container."""
        containers = pod["spec"]["containers"]
        found: dict[str, dict[str, int]] = {each["name"]: {} for each in containers}
        said = self._said(pod)
        for container in containers:
            requests = requests_of(container)
            for name in ("cpu", "memory"):
                use = said.get(name, _USUAL)
                share = requests.get(name, 0) * use.amount // 100
                found[container["name"]][name] = share if use.is_share else use.amount // len(containers)
        return found

    def of_nodes(self) -> dict[str, Counter[str]]:
        """By node, those that run something."""
        found: dict[str, Counter[str]] = {}
        for pod in self.pods:
            total = found.setdefault(pod["spec"]["nodeName"], Counter())
            for amounts in self.of(pod).values():
                total.update(amounts)
        return found

    def _said(self, pod: Object) -> dict[str, _Said]:
        own = _annotated(pod)
        owner = None if own else self._loaded_owner(pod)
        if owner is None:
            return own
        count = self._sharing[owner["metadata"]["uid"]]
        together = _annotated(owner)
        return {name: said if said.is_share else _Said(said.amount // count) for name, said in together.items()}

    def _loaded_owner(self, pod: Object) -> Object | None:
        """The nearest owner of a pod, owners of owners included, with the annotation for usage."""
        obj: Object | None = pod
        for _ in range(_LONGEST_CHAIN):
            obj = None if obj is None else self._owner(obj)
            if obj is not None and _annotated(obj):
                return obj
        return None

    def _owner(self, obj: Object) -> Object | None:
        for reference in obj["metadata"].get("ownerReferences") or ():
            if reference.get("controller"):
                uid = reference["uid"]
                if uid not in self._owners:
                    resource = BUILT_IN.get((reference["apiVersion"], reference["kind"]))
                    namespace = obj["metadata"].get("namespace", "")
                    found = self._api.find(resource, namespace, reference["name"]) if resource is not None else None
                    self._owners[uid] = found
                return self._owners[uid]
        return None


def _annotated(obj: Object) -> dict[str, _Said]:
    """What the annotation says, as far as it can be read."""
    text = (obj["metadata"].get("annotations") or {}).get(USAGE, "")
    found = {}
    for part in text.split(",") if text else ():
        name, _, amount = part.strip().partition("=")
        if name in ("cpu", "memory"):
            try:
                is_share = amount.endswith("%")
                found[name] = _Said(int(amount[:-1]), True) if is_share else _Said(amount_of(name, amount))
            except (QuantityError, ValueError):
                continue
    return found


def _spelled(amounts: Mapping[str, int]) -> Object:
    return {"cpu": f"{amounts['cpu']}m", "memory": f"{amounts['memory'] // 1024}Ki"}


def metrics(api: Reading, resource: Resource, objects: Iterable[Object], namespace: str | None) -> list[Object]:
    """The metrics of these pods or nodes, those that run."""
    usage, now = Usage(api, namespace), api.stamps.now()
    by_node = usage.of_nodes() if resource == NODE_METRICS else {}
    found = []
    for obj in objects:
        metadata = {key: obj["metadata"][key] for key in ("name", "namespace", "labels") if key in obj["metadata"]}
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        metric: Object = {
            **head,
            "metadata": {**metadata, "creationTimestamp": now},
            "timestamp": now,
            "window": _WINDOW,
        }
        if resource == NODE_METRICS:
            found.append({**metric, "usage": _spelled(by_node.get(metadata["name"]) or Counter())})
        elif is_running(obj):
            containers = [{"name": name, "usage": _spelled(amounts)} for name, amounts in usage.of(obj).items()]
            found.append({**metric, "containers": containers})
    return found

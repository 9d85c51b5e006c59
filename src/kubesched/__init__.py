"""kubesched: the Kubernetes scheduler, in Python.

Same decisions as kube-scheduler, on a columnar engine that looks at every node.

    from kubesched import Cluster

    cluster = Cluster.from_kubeconfig(context="prod")
    cluster.pending()                                  # why pods wait, in groups, and what would help
    cluster.explain("shop/checkout-7d9c")              # the verdict on every node
    cluster.what_if(drain="topology.kubernetes.io/zone=a").to_frame()

The names in `__all__` stay. Each is loaded when it is first used, so that `import kubesched` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Cluster": "kubesched.library.cluster",
    "NodeBuilder": "kubesched.library.builders",
    "PodBuilder": "kubesched.library.builders",
    "Result": "kubesched.library.results",
    "UserError": "kubesched.api.errors",
    "make_node": "kubesched.library.builders",
    "make_pod": "kubesched.library.builders",
}
"""The module of each name. What a type checker knows of them is in `__init__.pyi`."""

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kubesched' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

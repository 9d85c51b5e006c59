"""DefaultPreemption: when nothing fits, which pods to evict so that a pod fits."""

from kubesched.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]

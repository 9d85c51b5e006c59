"""InterPodAffinity: pods that want to be near others, or far from them; and others that want the same of this one."""

from kubesched.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]

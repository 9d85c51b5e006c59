"""What would help a pod that fits nowhere: changes of the pod, of nodes, of the cluster, each tried on the engine."""

from kubesched.ask.remedies.remedy import ObjectChange, Remedies, Remedy, RemedyStep
from kubesched.ask.remedies.search import remedies
from kubesched.framework.advice import RemedyKind

__all__ = ["ObjectChange", "Remedies", "Remedy", "RemedyKind", "RemedyStep", "remedies"]

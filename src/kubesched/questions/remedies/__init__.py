"""What would help a pod that fits nowhere: changes of the pod, of nodes, of the cluster, each tried on the engine."""

from kubesched.framework.advice import RemedyKind
from kubesched.questions.remedies.remedy import ObjectChange, Remedies, Remedy, RemedyStep
from kubesched.questions.remedies.search import remedies

__all__ = ["ObjectChange", "Remedies", "Remedy", "RemedyKind", "RemedyStep", "remedies"]

"""What would help a pod that fits nowhere: changes of the pod, of nodes, of the cluster, each tried on the engine."""

from kubesched.questions.remedies.remedy import ObjectChange, Remedies, Remedy, Sort, Step
from kubesched.questions.remedies.search import remedies

__all__ = ["ObjectChange", "Remedies", "Remedy", "Sort", "Step", "remedies"]

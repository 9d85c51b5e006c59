"""Why does a pod go where it goes, or nowhere, and what would help? `explain(cluster, pod)` has it all."""

from kubesched.questions.explain.explained_pod import ExplainedPod, ExplanationFindings, explain
from kubesched.questions.explain.grouping import NodeGroup, Trait

__all__ = ["ExplainedPod", "ExplanationFindings", "NodeGroup", "Trait", "explain"]

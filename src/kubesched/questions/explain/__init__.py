"""Why does a pod go where it goes, or nowhere, and what would help? `explain(cluster, pod)` has it all."""

from kubesched.questions.explain.answer import Answer, Findings, explain
from kubesched.questions.explain.grouping import NodeGroup, Trait
from kubesched.questions.explain.misses import Lack, Miss

__all__ = ["Answer", "Findings", "Lack", "Miss", "NodeGroup", "Trait", "explain"]

"""The functions of Kubernetes' CEL environment, a module per subject. Importing this package registers them all."""

from kubesched.cel import operators
from kubesched.cel.library import conversions, formats, kubernetes, lists, network, strings, times

__all__ = ["conversions", "formats", "kubernetes", "lists", "network", "operators", "strings", "times"]

"""The functions of Kubernetes' CEL environment, a module per subject. Importing this package registers them all."""

from kubesched.cel import operators
from kubesched.cel.library import (
    conversions,
    lists,
    network,
    optionals,
    quantities,
    regex,
    semvers,
    strings,
    times,
    urls,
)

__all__ = [
    "conversions",
    "lists",
    "network",
    "operators",
    "optionals",
    "quantities",
    "regex",
    "semvers",
    "strings",
    "times",
    "urls",
]

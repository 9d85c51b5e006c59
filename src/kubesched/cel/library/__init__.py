"""The functions of Kubernetes' CEL environment, a module per subject. Importing this package registers them all."""

from kubesched.cel import operators
from kubesched.cel.library import (
    conversions,
    formats,
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
    "formats",
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

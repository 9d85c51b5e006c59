"""From kinds to their rules."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.sandbox.admission import pods
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.kinds import PODS, Resource

CUSTOM = Rules(counts_generations=True)
"""For custom resources, whose meaning only their owners know."""

RULES: Mapping[Resource, Rules] = {PODS: pods.RULES}

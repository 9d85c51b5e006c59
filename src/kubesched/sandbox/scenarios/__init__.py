"""Samples to watch: small stories that play in a sandbox, each about one thing a scheduler does."""

from __future__ import annotations

from kubesched.sandbox.scenarios.batch import BATCH
from kubesched.sandbox.scenarios.failure import FAILURE
from kubesched.sandbox.scenarios.scenario import Scenario, Stage, Step
from kubesched.sandbox.scenarios.shop import SHOP

SCENARIOS = {scenario.name: scenario for scenario in (SHOP, BATCH, FAILURE)}

__all__ = ["SCENARIOS", "Scenario", "Stage", "Step"]

"""Samples to watch: small stories that play in a sandbox, each about one thing a scheduler does."""

from __future__ import annotations

from kubesched.sandbox.scenarios.scenario import Scenario, Stage, Step
from kubesched.sandbox.scenarios.stories import BATCH, FAILURE, SHOP

SCENARIOS = {scenario.name: scenario for scenario in (SHOP, BATCH, FAILURE)}

__all__ = ["SCENARIOS", "Scenario", "Stage", "Step"]

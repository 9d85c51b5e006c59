"""The scheduler inside the sandbox: the one that runs on live clusters, wired to the API by plain calls."""

from __future__ import annotations

from kubesched_sandbox.scheduling.inside import SandboxScheduler

__all__ = ["SandboxScheduler"]

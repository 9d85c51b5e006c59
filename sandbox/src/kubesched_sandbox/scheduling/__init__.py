"""The sandbox's scheduler: the same that runs on live clusters, with calls to the API in place of HTTP."""

from __future__ import annotations

from kubesched_sandbox.scheduling.inside import SandboxScheduler

__all__ = ["SandboxScheduler"]

"""What `kubesched version` answers: by itself, since it is asked for most often and has to load nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VersionAnswer:
    """Which kubesched this is, and which Kubernetes it follows."""

    version: str
    kubernetes: str
    """The newest release that is followed."""
    python: str
    releases: tuple[str, ...] = ()
    """All releases that are followed, the newest first."""

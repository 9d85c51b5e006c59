"""The API server without its wire: what Kubernetes guarantees about objects, as calls."""

from __future__ import annotations

from kubesched.sandbox.api.core import Api, bootstrap
from kubesched.sandbox.api.reading import ApiEvent
from kubesched.sandbox.api.selecting import ListSelector, selection
from kubesched.sandbox.api.stamps import Stamps
from kubesched.sandbox.api.writing import PatchKind

__all__ = ["Api", "ApiEvent", "ListSelector", "PatchKind", "Stamps", "bootstrap", "selection"]
